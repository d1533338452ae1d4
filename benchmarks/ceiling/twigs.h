/* Nested paths of nothing but names: what yfilter/index/twigs.py does, on the same states. */

#ifndef CEILING_TWIGS_H
#define CEILING_TWIGS_H

#include "message.h"

static uint64_t *rows;
static int *place_of, *owner, *walk, owners, row_count, row_room, owner_room, stamp = 1000000000;
static uint64_t *below; /* of each element: 256 bits of its children, as many of all below */
static int below_made;

/* Nothing is known of a message yet; -1 without memory. */
static int begin_rows(void)
{
    for (int i = 0; i < owners; i++)
        place_of[owner[i]] = 0;
    owners = row_count = below_made = 0;
    if (owner_room < elements) {
        owner_room = 2 * elements;
        free(place_of);
        free(owner);
        free(walk);
        free(below);
        place_of = calloc(owner_room, sizeof(int));
        owner = calloc(owner_room, sizeof(int));
        walk = calloc(owner_room + 1, sizeof(int));
        below = calloc(owner_room, 8 * sizeof(uint64_t));
    }
    return place_of && owner && walk && below ? 0 : -1;
}

static int twig_step(int state, int label)
{
    const int32_t *row = T.twig_states + 16 * (int64_t)state;
    if (!(row[8] & T.label_bits[label]))
        return row[7];
    uint64_t key = ((uint64_t)(uint32_t)row[0] << 32) | (uint32_t)(label << 2);
    uint64_t place = ((key ^ (key >> 32)) * 0x9E3779B97F4A7C15ull) >> T.twig_shift;
    while ((uint64_t)T.twig_slots[2 * place] != key) {
        if (T.twig_slots[2 * place] == 0)
            return -1;
        place = (place + 1) & T.twig_mask;
    }
    return (int)T.twig_slots[2 * place + 1];
}

static void make_row(int element, uint64_t *row)
{
    stamp++;
    walk[INTS(DEPTH)[element]] = T.twig_start;
    for (int child = element + 1; child < INTS(END)[element];) {
        int depth = INTS(DEPTH)[child];
        int state = twig_step(walk[depth - 1], INTS(LABEL)[INTS(NAME)[child]]);
        const int32_t *made = T.twig_states + 16 * (int64_t)state;
        if (state < 0 || (state && (made[1] < 0 || made[3] != T.twig_clock))) {
            too_much++;
            return;
        }
        int32_t *list = T.twig_lists + made[1];
        if (state && made[1] && list[0] != stamp) {
            list[0] = stamp;
            for (int i = LIST_QUERIES; i < LIST_QUERIES + list[1]; i++)
                row[list[i] >> 6] |= 1ull << (list[i] & 63);
        }
        walk[depth] = state;
        child = state && made[2] & 1 ? child + 1 : INTS(END)[child];
    }
}

static void set_below(uint64_t *bits, int symbol)
{
    bits[(symbol & 255) >> 6] |= 1ull << (symbol & 63);
    bits[4 + ((symbol & 255) >> 6)] |= 1ull << (symbol & 63);
}

static void make_below(void)
{
    memset(below, 0, 64 * (int64_t)elements);
    for (int element = elements - 1; element > 0; element--) {
        int label = INTS(LABEL)[INTS(NAME)[element]];
        uint64_t *bits = below + 8 * (int64_t)INTS(PARENT)[element];
        set_below(bits, 0);
        set_below(bits, T.exact[label]);
        set_below(bits, T.in_namespace[label]);
        set_below(bits, T.any_namespace[label]);
        for (int i = 4; i < 8; i++)
            bits[i] |= below[8 * (int64_t)element + i];
    }
    below_made = 1;
}

/* Whether a twig is found below an element, by names alone: no, yes, perhaps. */
static int by_names(int twig, int element)
{
    int needs = T.twig_needs[twig];
    if (!below_made)
        make_below();
    const uint64_t *bits = below + 8 * (int64_t)element;
    if (!(bits[needs & 7] >> ((needs >> 3) & 63) & bits[(needs >> 9) & 7] >> ((needs >> 12) & 63) & 1))
        return 0;
    return T.names_sure && needs & 1 << 18 ? 1 : 2;
}

/* The bits of what is found below an element; 0: not worth it for so many questions. */
static const uint64_t *twig_row(int element, int count)
{
    int words = T.twigs / 64 + 1;
    if (place_of[element] > 0)
        return rows + (int64_t)(place_of[element] - 1) * words;
    if (place_of[element] == 0)
        owner[owners++] = element;
    place_of[element] -= count;
    if (-place_of[element] < T.questions_min * (INTS(END)[element] - element))
        return 0;
    if ((row_count + 1) * words > row_room) {
        row_room = 2 * (row_count + 1) * words;
        rows = realloc(rows, 8 * (int64_t)row_room);
        if (!rows)
            abort();
    }
    uint64_t *row = rows + (int64_t)row_count * words;
    memset(row, 0, 8 * words);
    make_row(element, row);
    place_of[element] = ++row_count;
    return row;
}

#endif
