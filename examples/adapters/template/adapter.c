/* A target of rebalance-verifier in C, to start from; it needs nothing but the standard library:
 *
 *     cc -O1 -o adapter adapter.c && rebalance check --adapter --validate -- ./adapter
 *
 * It is sticky in the simplest way: keep what was assigned last, deal out the rest. Replace HELLO, assign, user_data.
 * The JSON below reads what this protocol sends; a library does as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELLO[] =
    "{\"name\":\"template\",\"version\":\"1.0\",\"language\":\"C\","
    "\"protocols\":[\"eager\"]," /* "cooperative" if it withholds what changes its owner */
    "\"promises\":[],"           /* what its documentation claims: see docs/how-to/judge-in-another-language.md */
    "\"user_data\":true}";       /* false if its members write none: user_data is then never asked */

/* --- memory that lives until the reply is written, and errors, which are an answer too --- */

typedef struct Chunk { struct Chunk *next; max_align_t data[]; } Chunk;
static Chunk *chunks;
static jmp_buf failed;
static const char *trouble;

static void fail(const char *why) { trouble = why; longjmp(failed, 1); }

static void *take(size_t size) {
    Chunk *chunk = calloc(1, sizeof *chunk + size);
    if (!chunk) fail("out of memory");
    chunk->next = chunks, chunks = chunk;
    return chunk->data;
}

static void release(void) {
    for (Chunk *next; chunks; chunks = next) next = chunks->next, free(chunks);
}

typedef struct { char *text; size_t size, room; } Text; /* grows; starts as {0} */

static void add(Text *out, const char *bytes, size_t count) {
    if (out->size + count + 1 > out->room) {
        char *more = take(out->room = 2 * (out->size + count + 64));
        if (out->size) memcpy(more, out->text, out->size);
        out->text = more;
    }
    memcpy(out->text + out->size, bytes, count);
    out->text[out->size += count] = 0;
}

static void addf(Text *out, const char *format, ...) { /* short things only */
    char line[64];
    va_list arguments;
    va_start(arguments, format);
    add(out, line, (size_t)vsnprintf(line, sizeof line, format, arguments));
    va_end(arguments);
}

/* --- JSON --- */

typedef struct Json { /* of what an object maps to, `name` is the key */
    char type;        /* { [ " # (number) and n, t, f for null, true, false */
    const char *name, *text;
    long number;
    struct Json *first, *next;
    size_t count;
} Json;

static Json *field(Json *object, const char *name) {
    for (Json *at = object ? object->first : NULL; at; at = at->next)
        if (!strcmp(at->name, name)) return at;
    return NULL;
}

static const char *blank(const char *at) { return at + strspn(at, " \t\r\n"); }

static const char *string(const char *at, const char **value) {
    Text out = {0};
    add(&out, "", 0);
    for (unsigned code, low; *++at != '"';) {
        if (!*at) fail("a string without an end");
        if (*at != '\\') { add(&out, at, 1); continue; }
        const char *plain = strchr("\"\"\\\\//b\bf\fn\nr\rt\t", *++at);
        if (*at != 'u') {
            if (!plain) fail("an unknown escape");
            add(&out, plain + 1, 1);
            continue;
        }
        if (sscanf(at + 1, "%4x", &code) != 1) fail("\\u without digits");
        at += 4;
        if (code >= 0xd800 && code < 0xdc00 && sscanf(at + 1, "\\u%4x", &low) == 1)
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00), at += 6;
        for (int shift = code < 0x80 ? 0 : code < 0x800 ? 6 : code < 0x10000 ? 12 : 18, first = shift; shift >= 0; shift -= 6) {
            static const unsigned marks[] = {0, 0xc0, 0xe0, 0xf0};
            unsigned byte = shift == first ? marks[shift / 6] | code >> shift : 0x80 | (code >> shift & 0x3f);
            add(&out, (char[]){(char)byte}, 1);
        }
    }
    *value = out.text;
    return at + 1;
}

static const char *value(const char *at, Json *into) {
    at = blank(at);
    into->type = *at;
    if (*at == '"') return string(at, &into->text);
    if (*at == '{' || *at == '[') {
        char end = *at == '{' ? '}' : ']';
        Json **place = &into->first;
        for (at = blank(at + 1); *at != end; place = &(*place)->next, into->count++) {
            Json *item = *place = take(sizeof *item);
            if (end == '}') {
                if (*at != '"') fail("a key that is no string");
                at = blank(string(at, &item->name));
                if (*at++ != ':') fail("a key without a value");
            }
            at = blank(value(at, item));
            if (*at == ',') at = blank(at + 1);
            else if (*at != end) fail("no end of an object or array");
        }
        return at + 1;
    }
    char *end;
    if (strchr("ntf", *at) && *at) return at + strspn(at, "abcdefghijklmnopqrstuvwxyz");
    into->type = '#', into->number = strtol(at, &end, 10);
    if (end == at) fail("no JSON");
    return end;
}

static void quote(Text *out, const char *text) {
    add(out, "\"", 1);
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20) addf(out, "\\u%04x", *text);
        else if (*text == '"' || *text == '\\') addf(out, "\\%c", *text);
        else add(out, text, 1);
    }
    add(out, "\"", 1);
}

/* --- the assignor --- */

typedef struct {
    const char *id;
    Json *topics;
    long generation;
    const char *kept; /* what user_data wrote after the generation; NULL: nothing, or another client's */
    Text granted;     /* [topic,[partition]],... */
    size_t load;
} Member;

/* What a member writes into its subscription that was last assigned `owned`, [[topic,[partition,...]],...], in
 * `generation`, -1 before the first. Any bytes: here lines of text, "template GENERATION", then "PARTITION TOPIC". */
static void user_data(Json *owned, long generation, Text *out) {
    addf(out, "template %ld\n", generation);
    for (Json *run = owned->first; run; run = run->next)
        for (Json *index = run->first->next->first; index; index = index->next) {
            addf(out, "%ld ", index->number);
            add(out, run->first->text, strlen(run->first->text));
            add(out, "\n", 1);
        }
}

static void remember(Member *member, const char *digits) {
    Text data = {0};
    unsigned byte;
    int read = 0;
    for (; digits && sscanf(digits, "%2x", &byte) == 1; digits += 2) add(&data, (char[]){(char)byte}, 1);
    member->generation = -1;
    if (data.text && sscanf(data.text, "template %ld\n%n", &member->generation, &read) == 1 && read)
        member->kept = data.text + read;
}

static int newer_first(const void *left, const void *right) {
    const Member *a = left, *b = right;
    if (a->generation != b->generation) return a->generation < b->generation ? 1 : -1;
    return strcmp(a->id, b->id);
}

static int by_name(const void *left, const void *right) {
    return strcmp((*(Json *const *)left)->name, (*(Json *const *)right)->name);
}

static int subscribes(Member *member, const char *topic) {
    for (Json *at = member->topics->first; at; at = at->next)
        if (!strcmp(at->text, topic)) return 1;
    return 0;
}

static void give(Member *member, Json *topic, size_t index) { /* a partition's racks are free for a mark: taken */
    Json *partition = topic->first;
    for (size_t i = 0; i < index; i++) partition = partition->next;
    if (partition->number) return;
    partition->number = 1;
    add(&member->granted, ",", member->load++ ? 1 : 0);
    add(&member->granted, "[", 1);
    quote(&member->granted, topic->name);
    addf(&member->granted, ",[%zu]]", index);
}

/* `topics` has for each topic an array with one entry per partition, the racks of its replicas; a topic that the
 * leader does not know is absent, though members may subscribe to it. */
static void assign(Json *topics, Json *asked, Text *out) {
    Member *members = take(asked->count * sizeof *members + 1), *end = members;
    for (Json *at = asked->first; at; at = at->next, end++) {
        end->id = field(at, "id")->text, end->topics = field(at, "topics");
        remember(end, field(at, "user_data")->text);
    }
    /* The newer claim first, and of claims of equal age that of the lesser id: nothing may depend on the order. */
    qsort(members, asked->count, sizeof *members, newer_first);
    for (Member *member = members; member < end; member++)
        for (const char *at = member->kept; at && *at; at = strchr(at, '\n') + 1) {
            char *name;
            long index = strtol(at, &name, 10);
            if (*name != ' ' || !strchr(name, '\n')) break;
            size_t length = strcspn(++name, "\n");
            char *topic = memcpy(take(length + 1), name, length);
            Json *known = field(topics, topic);
            if (known && index >= 0 && (size_t)index < known->count && subscribes(member, topic))
                give(member, known, (size_t)index);
        }
    Json **sorted = take(topics->count * sizeof *sorted + 1), **last = sorted;
    for (Json *at = topics->first; at; at = at->next) *last++ = at;
    qsort(sorted, topics->count, sizeof *sorted, by_name);
    for (Json **topic = sorted; topic < last; topic++) {
        size_t index = 0;
        for (Json *partition = (*topic)->first; partition; partition = partition->next, index++) {
            Member *least = NULL;
            for (Member *at = members; !partition->number && at < end; at++)
                if (subscribes(at, (*topic)->name) &&
                    (!least || at->load < least->load || (at->load == least->load && strcmp(at->id, least->id) < 0)))
                    least = at;
            if (least) give(least, *topic, index);
        }
    }
    for (Member *member = members; member < end; member++) {
        add(out, ",", member > members ? 1 : 0);
        quote(out, member->id);
        add(out, ":[", 2);
        if (member->load) add(out, member->granted.text, member->granted.size);
        add(out, "]", 1);
    }
}

/* --- the protocol: one JSON object per line, one reply per request, in order; print to stderr, never to stdout --- */

static long seq; /* of the last request, also after it failed */

static void answer(const char *line, Text *reply) {
    Json *request = take(sizeof *request);
    value(line, request);
    Json *number = field(request, "seq"), *asked = field(request, "cmd");
    if (!number || !asked) fail("neither seq nor cmd");
    seq = number->number;
    if (!strcmp(asked->text, "bye")) exit(0);
    if (!strcmp(asked->text, "hello")) {
        add(reply, HELLO, sizeof HELLO - 1);
    } else if (!strcmp(asked->text, "user_data")) {
        Text data = {0};
        user_data(field(request, "owned"), field(request, "generation")->number, &data);
        add(reply, "{\"user_data\":\"", 14);
        for (size_t i = 0; i < data.size; i++) addf(reply, "%02x", (uint8_t)data.text[i]);
        add(reply, "\"}", 2);
    } else {
        add(reply, "{\"assignment\":{", 15);
        assign(field(field(request, "cluster"), "topics"), field(request, "members"), reply);
        add(reply, "}}", 2);
    }
}

static void serve(const char *line) {
    static Text reply;
    reply = (Text){0};
    if (!setjmp(failed)) {
        answer(line, &reply);
        printf("{\"seq\":%ld,\"result\":%s}\n", seq, reply.text);
    } else {
        printf("{\"seq\":%ld,\"errored\":{\"message\":\"%s\"}}\n", seq, trouble);
    }
    fflush(stdout);
    release();
}

int main(void) {
    char *line = NULL;
    size_t room = 0, size = 0;
    for (int byte; (byte = getchar()) != EOF;) {
        if (size + 2 > room && !(line = realloc(line, room = 2 * room + 4096))) return 1;
        line[size++] = (char)byte;
        if (byte != '\n') continue;
        line[size - 1] = 0, size = 0;
        serve(line);
    }
    return 0;
}
