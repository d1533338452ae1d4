/* Verification of candidates: what yfilter/index/residuals.py does, on the same records. */

#ifndef CEILING_RESIDUALS_H
#define CEILING_RESIDUALS_H

#include "twigs.h"

enum { LEVELS = 9, DEPTH_ROOM = 4096, KNOWN = 1 << 13 };

static int path[DEPTH_ROOM];
static int way[LEVELS][DEPTH_ROOM];
static uint64_t reached_at[LEVELS][DEPTH_ROOM], passed_at[LEVELS][DEPTH_ROOM];

/* What is known of nested paths in nested paths and of those from the message, of this message. */
static struct { int64_t key; int32_t epoch, value; } known[KNOWN];
static int known_count, known_epoch;

static int within(int record, int first, int end, int level);

static int ancestor(int element, int steps, int absolute)
{
    if (absolute)
        steps = INTS(DEPTH)[element] - steps;
    while (steps-- > 0)
        element = INTS(PARENT)[element];
    return element;
}

static int accepts(int symbol, int label)
{
    return T.exact[label] == symbol || T.in_namespace[label] == symbol
        || T.any_namespace[label] == symbol;
}

static int seen(int symbol)
{
    int name = INTS(SYMBOL_SEEN)[symbol];
    return name < names && accepts(symbol, INTS(LABEL)[name]);
}

/* The same search once a message: ``element`` -1 for one from the message as a whole. */
static int within_once(int record, int element, int level)
{
    int64_t key = ((int64_t)record << 32) | (uint32_t)element;
    uint64_t place = ((uint64_t)key * 0x9E3779B97F4A7C15ull) >> 51;
    while (known[place].epoch == known_epoch) {
        if (known[place].key == key)
            return known[place].value;
        place = (place + 1) & (KNOWN - 1);
    }
    int value = element < 0 ? within(record, 0, elements, level)
                            : within(record, element + 1, INTS(END)[element], level);
    if (++known_count > KNOWN / 2) {
        too_much = 1;
        return value;
    }
    place = ((uint64_t)key * 0x9E3779B97F4A7C15ull) >> 51;
    while (known[place].epoch == known_epoch)
        place = (place + 1) & (KNOWN - 1);
    known[place].key = key;
    known[place].epoch = known_epoch;
    known[place].value = value;
    return value;
}

static int within_below(int record, int element, int level)
{
    if (level == 0)
        return within(record, element + 1, INTS(END)[element], 1);
    return within_once(record, element, level + 1);
}

static int has_twig(const uint64_t *row, int twig, int element, int level)
{
    if (row)
        return (row[twig >> 6] >> (twig & 63)) & 1;
    int known = by_names(twig, element);
    if (known < 2)
        return known;
    return within_below(T.twig_queries[5 * (int64_t)twig + 4], element, level);
}

static int ancestor_holds(int code, int element)
{
    element = ancestor(element, code & 31, code & 32);
    if (code & 64)
        return has_twig(twig_row(element, 1), code >> 7, element, 0);
    return holds(element, code >> 7);
}

static int check(const int32_t *asked, int element, int level)
{
    switch (asked[0]) {
    case 5: return holds(element, asked[1]);
    case 6: return exists(element, asked[1]);
    case 7: return value_holds(element, asked[1], -1, asked[2], 0);
    case 8: return within_below(asked[1], element, level);
    case 10: return has_twig(twig_row(element, 1), asked[1], element, level);
    case 9: return within_once(asked[1], -1, 1);
    default: return value_holds(element, asked[1], asked[0], 0, T.numbers[asked[2]]);
    }
}

static int step_holds(const int32_t *record, int step, int element, int level)
{
    const int32_t *at = record + record[3 + step];
    if (at[1] && !accepts(at[1], INTS(LABEL)[INTS(NAME)[element]]))
        return 0;
    for (int i = 0; i < at[2]; i++)
        if (!check(at + 3 + 3 * i, element, level))
            return 0;
    return 1;
}

static uint64_t descendants(const int32_t *record)
{
    uint64_t found = 0;
    for (int step = 0; step < record[2]; step++)
        if (record[record[3 + step]])
            found |= 1ull << step;
    return found;
}

static uint64_t possible_at(uint64_t reached, uint64_t passed, uint64_t descendant, int top)
{
    uint64_t possible = ((reached << 1) & ~descendant) | ((passed << 1) & descendant);
    return possible | (top || (descendant & 1));
}

static uint64_t steps_at(
    const int32_t *record, int steps, uint64_t possible, int element, int level)
{
    uint64_t reached = 0;
    for (int step = 0; step < steps; step++)
        if ((possible >> step) & 1 && step_holds(record, step, element, level))
            reached |= 1ull << step;
    return reached;
}

static int on_path(const int32_t *record, int element)
{
    int depth = INTS(DEPTH)[element], steps = record[2];
    uint64_t descendant = descendants(record), reached = 0, passed = 0;
    for (int level = depth; level >= 0; level--) {
        path[level] = element;
        element = INTS(PARENT)[element];
    }
    for (int level = 0; level <= depth; level++) {
        uint64_t possible = possible_at(reached, passed, descendant, level == 0);
        reached = steps_at(record, steps, possible, path[level], 0);
        passed |= reached;
    }
    return (reached >> (steps - 1)) & 1;
}

static int hold(int number, int element)
{
    const int32_t *record = T.words + number;
    if (record[0] == 2)
        return within_below(number, element, 0);
    if (record[0])
        return on_path(record, element);
    for (int i = 0; i < record[2]; i++) {
        const int32_t *at = record + 3 + 4 * i;
        if (!check(at + 1, ancestor(element, at[0] >> 1, at[0] & 1), 0))
            return 0;
    }
    return 1;
}

static int leads_to(const int32_t *record, int top, int target, int level)
{
    int last = record[2] - 1, depth = INTS(DEPTH)[target];
    if (last == 0) {
        if (depth > top && !record[record[3]])
            return 0;
        return step_holds(record, 0, target, level);
    }
    if (depth - top < last || !step_holds(record, last, target, level))
        return 0;
    uint64_t descendant = descendants(record), reached = 0, passed = 0;
    int at = target;
    for (int up = depth; up >= top; up--) {
        way[level][up] = at;
        at = INTS(PARENT)[at];
    }
    for (at = top; at < depth; at++) {
        uint64_t possible = possible_at(reached, passed, descendant, at == top);
        reached = steps_at(record, last, possible, way[level][at], level);
        passed |= reached;
    }
    return (((descendant >> last) & 1 ? passed : reached) >> (last - 1)) & 1;
}

static int scanned(const int32_t *record, int first, int end, int level)
{
    int steps = record[2], top = INTS(DEPTH)[first], child = first;
    uint64_t descendant = descendants(record);
    reached_at[level][top] = passed_at[level][top] = 0;
    while (child < end) {
        int at = INTS(DEPTH)[child];
        uint64_t possible =
            possible_at(reached_at[level][at], passed_at[level][at], descendant, at == top);
        uint64_t reached = steps_at(record, steps, possible, child, level);
        if ((reached >> (steps - 1)) & 1)
            return 1;
        uint64_t passed = passed_at[level][at] | reached;
        reached_at[level][at + 1] = reached;
        passed_at[level][at + 1] = passed;
        child = possible_at(reached, passed, descendant, 0) ? child + 1 : INTS(END)[child];
    }
    return 0;
}

static int within(int number, int first, int end, int level)
{
    const int32_t *record = T.words + number;
    int symbol = record[record[3 + record[2] - 1] + 1];
    if (first >= end)
        return 0;
    if (symbol == 0)
        return scanned(record, first, end, level);
    int name = INTS(SYMBOL_SEEN)[symbol];
    if (name >= names || T.exact[INTS(LABEL)[name]] != symbol)
        return seen(symbol) && scanned(record, first, end, level);
    int low = INTS(POSITION_START)[name], stop = INTS(POSITION_START)[name + 1], high = stop;
    while (low < high) {
        int middle = (low + high) >> 1;
        if (INTS(POSITIONS)[middle] < first)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < stop && INTS(POSITIONS)[low] < end; low++)
        if (leads_to(record, INTS(DEPTH)[first], INTS(POSITIONS)[low], level))
            return 1;
    return 0;
}

#endif
