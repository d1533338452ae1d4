/* The engine's loop in plain C, on the engine's own tables: what yfilter/index/run.py, moves.py and
 * candidates.py do with a message that is bound and whose states are all made.  The same steps in
 * the same order, level by level and in groups; nothing is left out but the bounds on what one
 * message may cost, and groups of links.  Making states is no part: a transition or a list that is
 * not there is counted as missing, and so is what does not fit into the tables below. */

#include "residuals.h"

#include <time.h>

enum { HEADS = 1 << 20, MOVES = 1 << 20, OFFERS = 1 << 18 };

typedef struct {
    int64_t nanoseconds;
    int32_t found, heads, probes, lists, candidates, verified, missing;
} Replayed;

typedef struct {
    int count;
    int64_t key[MOVES];
    int target[MOVES], state[MOVES], element[MOVES], item[MOVES];
} Moves;

static Moves down, across, onto;
static int down_room = 512;

static int head_state[HEADS], head_operator[HEADS];
static double head_number[HEADS];
static int head_count;
static int *first_head, *end_head, element_room;
static uint64_t entered;

static struct { int place, element, operator; double number; } offers[OFFERS];
static int offered;

static struct { int query, record, element; } waiting[OFFERS];
static int waiting_count;

static uint64_t *marks;
static int32_t *found;
static int mark_words, found_count, epoch_now;
static volatile int touched;
static Replayed R;

static const int32_t *row_of(int state) { return T.states + 16 * (int64_t)state; }

static int edge_bit(int edge)
{
    uint64_t mixed = (uint64_t)(int64_t)edge * 0x9E3779B1ull;
    return 1 << (((mixed >> 8) & 0xFFFFFF) % 31);
}

/* -- candidates */

static void find(int query)
{
    uint64_t bit = 1ull << (query & 63), before = marks[query >> 6];
    marks[query >> 6] = before | bit;
    found[found_count] = query;
    found_count += !(before & bit);
}

static void verify(void)
{
    int sum = 0;
    for (int i = 0; i < waiting_count; i++)
        sum ^= T.words[waiting[i].record];
    touched = sum;
    R.verified += waiting_count;
    for (int i = 0; i < waiting_count; i++)
        if (hold(waiting[i].record, waiting[i].element))
            find(waiting[i].query);
    waiting_count = 0;
}

static void wait_for(int query, int record, int required, int element)
{
    if (required & 1 ? !has_atom(required >> 1) : required && !seen(required >> 1))
        return;
    if ((marks[query >> 6] >> (query & 63)) & 1)
        return;
    if (waiting_count == OFFERS)
        verify();
    waiting[waiting_count].query = query;
    waiting[waiting_count].record = record;
    waiting[waiting_count].element = element;
    waiting_count++;
}

static void take_groups(int32_t *group, const int32_t *end, int element)
{
    for (; group < end; group += 4 + 2 * group[1]) {
        int at = ancestor(element, group[0] & 31, group[0] & 32);
        if (INTS(END)[at] == at + 1 || (group[2] == epoch_now && group[3] == at))
            continue;
        group[2] = epoch_now;
        group[3] = at;
        R.candidates += group[1];
        const uint64_t *row = twig_row(at, group[1]);
        for (int i = 4; i < 4 + 2 * group[1]; i += 2) {
            int twig = group[i + 1];
            int known = row ? (row[twig >> 6] >> (twig & 63)) & 1 : by_names(twig, at);
            if (known == 1)
                find(group[i]);
            else if (known == 2)
                wait_for(group[i], T.twig_queries[5 * (int64_t)twig + 4], 0, at);
        }
    }
}

/* Rows with a residual each, from one up to before another. */
static void take_rows(const int32_t *at, const int32_t *end, int element)
{
    for (; at < end; at += 3) {
        if (at[1] < 0)
            wait_for(at[0], -at[1], at[2], element);
        else if (at[1] == 0 || ancestor_holds(at[1], element))
            find(at[0]);
    }
}

static void take_list(int32_t *list, int element)
{
    int sure = list[1], quick = list[2], slow = list[3];
    int32_t *at = list + LIST_QUERIES;
    R.candidates += quick + slow;
    if (list[0] != epoch_now) {
        list[0] = epoch_now;
        for (int i = 0; i < sure; i++)
            find(at[i]);
    }
    at += sure;
    for (int i = 0; i < quick; i++, at += 2)
        if (ancestor_holds(at[1], element))
            find(at[0]);
    take_rows(at, at + 3 * slow, element);
    at += 3 * slow;
    take_groups(at, at + list[4], element);
    at += list[4];
    /* Those of a second access are all verified, which finds the same. */
    for (const int32_t *end = at + list[5]; at < end;) {
        int32_t *rows = at + SECOND_QUERIES;
        at = rows + 3 * at[SECOND_COUNT];
        take_rows(rows, at, element);
    }
}

static int first_bound(const double *bounds, int count, double number, int above)
{
    int low = 0, high = count;
    while (low < high) {
        int middle = (low + high) >> 1;
        if (above ? bounds[middle] <= number : bounds[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void take_range(const int32_t *list, int operator, double number, int element)
{
    int count = list[1];
    int low = 0, high = count;
    int bound = first_bound(T.bounds + list[2], count, number, operator == 1 || operator == 4);
    if (operator <= 2)
        low = bound;
    else
        high = bound;
    R.candidates += high - low;
    const int32_t *rows = list + LIST_QUERIES;
    take_rows(rows + 3 * low, rows + 3 * high, element);
}

static void settle(void)
{
    int sum = 0;
    for (int i = 0; i < offered; i++)
        sum ^= T.lists[offers[i].place];
    touched = sum;
    R.lists += offered;
    for (int i = 0; i < offered; i++) {
        int32_t *list = T.lists + offers[i].place;
        if (offers[i].operator > 0)
            take_range(list, offers[i].operator, offers[i].number, offers[i].element);
        else
            take_list(list, offers[i].element);
    }
    offered = 0;
    verify();
}

/* -- the run */

static void resolve(Moves *moves)
{
    int count = moves->count, stale = 0;
    for (int i = 0; i < count; i++)
        if (moves->key[i]) {
            uint64_t key = moves->key[i];
            uint64_t place = ((key ^ (key >> 32)) * 0x9E3779B97F4A7C15ull) >> T.shift;
            moves->target[i] = (uint64_t)T.slots[2 * place] == key ? (int)T.slots[2 * place + 1] : -2;
            R.probes++;
        }
    for (int i = 0; i < count; i++)
        if (moves->target[i] == -2) {
            int64_t key = moves->key[i];
            uint64_t place = ((key ^ (key >> 32)) * 0x9E3779B97F4A7C15ull) >> T.shift;
            while (T.slots[2 * place] != key && T.slots[2 * place] != 0)
                place = (place + 1) & T.mask;
            moves->target[i] = T.slots[2 * place] == key ? (int)T.slots[2 * place + 1] : -1;
        }
    for (int i = 0; i < count; i++)
        if (moves->target[i] < 0) {
            R.missing++;
            moves->target[i] = 0;
        }
    for (int i = 0; i < count; i++)
        stale |= (moves->target[i] != 0) & (row_of(moves->target[i])[3] != T.clock);
    R.missing += stale;
}

static void add_move(Moves *moves, int64_t key, int state, int element, int item)
{
    if (moves->count == MOVES) {
        R.missing++;
        return;
    }
    int i = moves->count++;
    moves->key[i] = key;
    moves->state[i] = state;
    moves->element[i] = element;
    moves->item[i] = item;
}

static int64_t key_of(const int32_t *row, int edge) { return ((int64_t)row[0] << 32) | edge; }

static int ask_down(int position)
{
    int depth = INTS(DEPTH)[INTS(ORDER)[position]];
    down.count = 0;
    for (; position < elements; position++) {
        int element = INTS(ORDER)[position], parent = INTS(PARENT)[element] + 1;
        int heads = end_head[parent] - first_head[parent];
        if (down.count + heads > down_room) {
            if (down.count)
                break;
            down_room = 2 * heads;
        }
        if (INTS(DEPTH)[element] != depth)
            break;
        int label = INTS(LABEL)[INTS(NAME)[element]], bits = T.label_bits[label];
        for (int j = first_head[parent]; j < end_head[parent]; j++) {
            const int32_t *row = row_of(head_state[j]);
            if (row[8] & bits) {
                add_move(&down, key_of(row, label << 2), head_state[j], element, j);
            } else if (row[7]) {
                down.target[down.count] = row[7];
                add_move(&down, 0, head_state[j], element, j);
            }
        }
    }
    return position;
}

static void ask_attributes(void)
{
    across.count = 0;
    for (int i = 0; i < down.count; i++) {
        int state = down.target[i], element = down.element[i];
        const int32_t *row = row_of(state);
        if (head_operator[down.item[i]] >= 0 || !(row[2] & 2))
            continue;
        for (int k = INTS(OWN_START)[element]; k < INTS(OWN_START)[element + 1]; k++) {
            int edge = INTS(OWN_ASKS)[k];
            if (edge && row[9] & edge_bit(edge))
                add_move(&across, key_of(row, edge), state, element, k);
        }
    }
}

static void ask_atoms(void)
{
    onto.count = 0;
    for (int i = 0; i < across.count; i++) {
        int state = across.target[i], element = across.element[i];
        const int32_t *row = row_of(state);
        for (int k = across.item[i]; state; ) {
            int attribute = INTS(OWN_RANGES)[k], operator = attribute > 0;
            do {
                int atom = operator ? T.ranges[4 * attribute + operator - 1] : INTS(OWN_ATOM)[k];
                int edge = atom << 2 | 3;
                if (row[9] & edge_bit(edge))
                    add_move(&onto, key_of(row, edge), state, element, 8 * k + operator);
            } while (operator && ++operator < 5);
            if (++k == INTS(OWN_START)[element + 1] || INTS(OWN_ASKS)[k])
                break;
        }
    }
}

static void enter(int state, int operator, double number, int element)
{
    uint64_t bit = 1ull << (state & 63);
    const int32_t *row = row_of(state);
    if (entered & bit)
        for (int j = first_head[element + 1]; j < head_count; j++)
            if (head_state[j] == state && head_operator[j] == operator && head_number[j] == number)
                return;
    entered |= bit;
    if (row[1] < 0 || offered == OFFERS || head_count == HEADS) {
        R.missing++;
        return;
    }
    if (row[1] > 0) {
        offers[offered].place = row[1];
        offers[offered].element = element;
        offers[offered].operator = operator;
        offers[offered].number = number;
        offered++;
    }
    if (row[2] & 1) {
        head_state[head_count] = state;
        head_operator[head_count] = operator;
        head_number[head_count] = number;
        head_count++;
    }
}

static void enter_all(int position, int end)
{
    for (int i = 0, k = 0; position < end; position++) {
        int element = INTS(ORDER)[position];
        first_head[element + 1] = head_count;
        entered = 0;
        for (; i < down.count && down.element[i] == element; i++)
            if (down.target[i])
                enter(down.target[i], head_operator[down.item[i]], head_number[down.item[i]],
                      element);
        for (; k < onto.count && onto.element[k] == element; k++)
            if (onto.target[k])
                enter(onto.target[k], onto.item[k] & 7, DOUBLES(OWN_NUMBER)[onto.item[k] >> 3],
                      element);
        end_head[element + 1] = head_count;
    }
}

static void run(void)
{
    for (int i = 0; i < found_count; i++)
        marks[found[i] >> 6] = 0;
    found_count = offered = waiting_count = 0;
    head_state[0] = T.start;
    head_operator[0] = -1;
    head_number[0] = 0;
    first_head[0] = 0;
    end_head[0] = head_count = 1;
    for (int position = 0; position < elements;) {
        int end = ask_down(position);
        resolve(&down);
        ask_attributes();
        resolve(&across);
        ask_atoms();
        resolve(&onto);
        enter_all(position, end);
        settle();
        position = end;
    }
}

static int64_t now(int processor_time)
{
    struct timespec time;
    clock_gettime(processor_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

/* Match a recorded message; -1 without memory.  ``epoch`` is one that the lists have not seen. */
int replay(const Tables *tables, const Column *message, int epoch, int processor_time, Replayed *out)
{
    T = *tables;
    if (stage(message) || begin_rows())
        return -1;
    if (mark_words < T.queries / 64 + 1) {
        mark_words = T.queries / 64 + 1;
        free(marks);
        free(found);
        marks = calloc(mark_words, 8);
        found = calloc(T.queries + 1, 4);
        found_count = 0;
    }
    if (element_room < elements + 2) {
        element_room = 2 * elements + 2;
        free(first_head);
        free(end_head);
        first_head = calloc(element_room, sizeof(int));
        end_head = calloc(element_room, sizeof(int));
    }
    if (!marks || !found || !first_head || !end_head)
        return -1;
    memset(&R, 0, sizeof R);
    epoch_now = known_epoch = epoch;
    known_count = too_much = 0;
    int64_t start = now(processor_time);
    run();
    R.nanoseconds = now(processor_time) - start;
    R.found = found_count;
    R.heads = head_count - 1;
    R.missing += too_much;
    *out = R;
    return 0;
}

const int32_t *found_queries(void) { return found; }
