/* One recorded message, in the order of the columns that replay.py writes, and the tables of the
 * engine.  A message is copied into one set of buffers before it is matched, as binding it to
 * the engine's view does: its columns are as warm on either side. */

#ifndef CEILING_MESSAGE_H
#define CEILING_MESSAGE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Of an accept list, and of a second in it: yfilter/index/accept_lists.py. */
enum { LIST_QUERIES = 8, SECOND_COUNT = 4, SECOND_QUERIES = 7 };

typedef struct {
    const int64_t *slots;
    const int32_t *states;
    int32_t *lists;
    const double *bounds;
    const int32_t *words;
    int32_t *atoms;
    const int32_t *ranges;
    const uint8_t *octets;
    const double *numbers;
    const int32_t *exact, *in_namespace, *any_namespace, *label_bits;
    const int64_t *twig_slots;
    const int32_t *twig_states;
    int32_t *twig_lists;
    const int32_t *twig_queries, *twig_needs;
    uint64_t mask, twig_mask;
    int32_t shift, clock, start, queries;
    int32_t twig_shift, twig_clock, twig_start, twigs, questions_min, names_sure;
} Tables;

/* Columns of a message, one after another in the table of pointers and sizes that is recorded. */
enum {
    COUNTS, ORDER, PARENT, DEPTH, END, NAME, OWN_START, OWN_ATOM, OWN_ASKS, OWN_RANGES,
    OWN_NUMBER, SIGNATURE, SEEN, LABEL, ATTRIBUTE, POSITION_START, POSITIONS, TEXT_FIRST, TEXT_NEXT,
    WITHIN_FIRST, WITHIN_LAST, ATTRIBUTE_START, ATTRIBUTE_NAME, ATTRIBUTE_OFFSET,
    ATTRIBUTE_VALUES, CONTENT_OFFSET, CONTENT_VALUES, SYMBOL_SEEN, COLUMNS
};

typedef struct {
    const void *data;
    int64_t bytes;
} Column;

static Tables T;
static struct { void *data; int64_t room; } staged[COLUMNS];
static int elements, names, own_count, too_much;

#define INTS(column) ((const int32_t *)staged[column].data)
#define OCTETS(column) ((const uint8_t *)staged[column].data)
#define WORDS(column) ((const uint64_t *)staged[column].data)
#define DOUBLES(column) ((const double *)staged[column].data)

static int stage(const Column *message)
{
    for (int c = 0; c < COLUMNS; c++) {
        if (message[c].bytes > staged[c].room) {
            free(staged[c].data);
            staged[c].room = 2 * message[c].bytes;
            staged[c].data = malloc(staged[c].room);
            if (!staged[c].data)
                return -1;
        }
        memcpy(staged[c].data, message[c].data, message[c].bytes);
    }
    elements = INTS(COUNTS)[0];
    names = INTS(COUNTS)[1];
    own_count = INTS(COUNTS)[2];
    for (int i = 0; i < own_count; i++)
        if (INTS(OWN_ATOM)[i])
            T.atoms[8 * (int64_t)INTS(OWN_ATOM)[i] + 7] = i;
    return 0;
}

static int holds(int element, int atom)
{
    if (!((WORDS(SIGNATURE)[element] >> (atom & 63)) & 1))
        return 0;
    for (int i = INTS(OWN_START)[element]; i < INTS(OWN_START)[element + 1]; i++)
        if (INTS(OWN_ATOM)[i] == atom)
            return 1;
    return 0;
}

static int has_atom(int atom)
{
    if (!((WORDS(SEEN)[(atom >> 6) & 63] >> (atom & 63)) & 1))
        return 0;
    int i = T.atoms[8 * (int64_t)atom + 7];
    return i < own_count && INTS(OWN_ATOM)[i] == atom;
}

static int is_space(int octet)
{
    return octet == 9 || octet == 10 || octet == 13 || octet == 32;
}

static double number_in(const uint8_t *values, int first, int last)
{
    static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    int place = first, negative = 0, digits = 0, behind = -1;
    int64_t mantissa = 0;
    while (place < last && is_space(values[place]))
        place++;
    if (place < last && (values[place] == '+' || values[place] == '-'))
        negative = values[place++] == '-';
    for (; place < last && digits <= 15; place++) {
        if (values[place] >= '0' && values[place] <= '9') {
            mantissa = 10 * mantissa + (values[place] - '0');
            digits++;
            behind += behind >= 0;
        } else if (values[place] == '.' && behind < 0) {
            behind = 0;
        } else {
            break;
        }
    }
    while (place < last && is_space(values[place]))
        place++;
    if (place < last || digits == 0 || digits > 15)
        return NAN; /* exponents and long numbers: the workload has none, and the check would tell */
    double value = mantissa;
    if (behind > 0)
        value /= powers[behind];
    return negative ? -value : value;
}

static int is_value(int atom, const uint8_t *values, int first, int last)
{
    const int32_t *row = T.atoms + 8 * (int64_t)atom;
    return row[3] == last - first && !memcmp(T.octets + row[2], values + first, last - first);
}

static int exists(int element, int attribute)
{
    if (attribute == 1)
        return INTS(TEXT_FIRST)[element] >= 0;
    for (int i = INTS(ATTRIBUTE_START)[element]; i < INTS(ATTRIBUTE_START)[element + 1]; i++)
        if (INTS(ATTRIBUTE)[INTS(ATTRIBUTE_NAME)[i]] == attribute)
            return 1;
    return 0;
}

static int compared(double value, int operator, double number)
{
    switch (operator) {
    case 0: return value == number;
    case 1: return value < number;
    case 2: return value <= number;
    case 3: return value > number;
    default: return value >= number;
    }
}

/* Whether some value of an attribute (1: a text node, 2: the string value) differs from an
 * equality's, or with ``operator`` 0 and above compares so with a number. */
static int value_holds(int element, int attribute, int operator, int atom, double number)
{
    const uint8_t *values = OCTETS(CONTENT_VALUES);
    const int32_t *offset = INTS(CONTENT_OFFSET);
#define HOLDS(first, last)                                                                       \
    (operator < 0 ? !is_value(atom, values, first, last)                                          \
                  : compared(number_in(values, first, last), operator, number))
    if (attribute == 2)
        return HOLDS(offset[INTS(WITHIN_FIRST)[element]], offset[INTS(WITHIN_LAST)[element]]);
    if (attribute == 1) {
        for (int i = INTS(TEXT_FIRST)[element]; i >= 0; i = INTS(TEXT_NEXT)[i])
            if (HOLDS(offset[i], offset[i + 1]))
                return 1;
        return 0;
    }
    values = OCTETS(ATTRIBUTE_VALUES);
    offset = INTS(ATTRIBUTE_OFFSET);
    for (int i = INTS(ATTRIBUTE_START)[element]; i < INTS(ATTRIBUTE_START)[element + 1]; i++)
        if (INTS(ATTRIBUTE)[INTS(ATTRIBUTE_NAME)[i]] == attribute)
            return HOLDS(offset[i], offset[i + 1]);
    return 0;
#undef HOLDS
}

#endif
