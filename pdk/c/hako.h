/*
 * hako.h: write hako plugins in C, over ABI 1. One file of the plugin defines HAKO_IMPLEMENTATION before it includes this
 * header, and defines hako_plugin, the table of its handlers:
 *
 *     static void greet(const hako_value *in, hako_result *out) {
 *         hako_textf(out, "Hello, %s!", hako_string(in, "name", "world"));
 *     }
 *     static const hako_tool tools[] = {{"greet", greet}, {0}};
 *     const hako_handlers hako_plugin = {.tools = tools};
 *
 * For wasm32-wasi (clang --target=wasm32-wasi -mexec-model=reactor) the calls go to the host. Natively there is no host:
 * hako_test_call serves a request for tests, and HTTP and SQL fail with the code "network".
 *
 * All that the functions return, and all memory of hako_alloc, is valid until the call ends. Text in answers that is not
 * UTF-8 gets U+FFFD for each wrong byte.
 */
#ifndef HAKO_H
#define HAKO_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* JSON. A value of an object has a key; values of an object or array are a list: first, then next. */
typedef enum { HAKO_NULL, HAKO_BOOL, HAKO_NUMBER, HAKO_STRING, HAKO_ARRAY, HAKO_OBJECT } hako_type;
typedef struct hako_value {
    hako_type type;
    const char *key;
    const char *text; /* a string, decoded; a number as it was written; "true" or "false". NUL-terminated */
    size_t length;    /* of text, in bytes: a string may contain NUL */
    struct hako_value *first, *next;
} hako_value;

/* hako_parse returns NULL for what is not JSON (RFC 8259) or is nested more than 1000 deep. */
const hako_value *hako_parse(const char *json, size_t length);
/* hako_get returns NULL if there is no such member; object may be NULL. */
const hako_value *hako_get(const hako_value *object, const char *key);
const char *hako_string(const hako_value *object, const char *key, const char *otherwise);
double hako_number(const hako_value *object, const char *key, double otherwise);
int64_t hako_integer(const hako_value *object, const char *key, int64_t otherwise);
bool hako_bool(const hako_value *object, const char *key, bool otherwise);

void *hako_alloc(size_t size);
char *hako_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A buffer for JSON that the plugin writes. */
typedef struct {
    char *data;
    size_t length, capacity;
} hako_buffer;
void hako_write(hako_buffer *b, const void *data, size_t length);
void hako_writef(hako_buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hako_write_string(hako_buffer *b, const char *text, size_t length); /* as JSON, with quotes */
void hako_write_value(hako_buffer *b, const hako_value *value);

/* The result of a handler. */
typedef struct {
    hako_buffer items;       /* content blocks, contents, messages or completions */
    hako_buffer structured;  /* structured content: write JSON into it */
    const char *description; /* of a prompt */
    const char *code;        /* an error other than a tool's, see HAKO_NOT_FOUND and others */
    const char *error;
    bool is_error;
} hako_result;

void hako_text(hako_result *out, const char *text, size_t length);
void hako_textf(hako_result *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hako_image(hako_result *out, const char *mime_type, const void *data, size_t length);
void hako_audio(hako_result *out, const char *mime_type, const void *data, size_t length);
void hako_link(hako_result *out, const char *uri, const char *name, const char *mime_type);
void hako_embed(hako_result *out, const char *uri, const char *mime_type, const char *text);
/* hako_fail makes the result a failure: of a tool, with a text on which a model can act. */
void hako_fail(hako_result *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* hako_error makes it one with a code: "invalid", "not-found", ... A tool's text starts with the code then. */
void hako_error(hako_result *out, const char *code, const char *message);
/* hako_panic ends the call with a message for the caller. Call it where the plugin cannot go on. */
_Noreturn void hako_panic(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Contents of a resource, messages of a prompt (role "user" or "assistant"), values of a completion. */
void hako_contents(hako_result *out, const char *uri, const char *mime_type, const char *text);
void hako_contents_bytes(hako_result *out, const char *uri, const char *mime_type, const void *data, size_t length);
void hako_message(hako_result *out, const char *role, const char *text);
void hako_completion(hako_result *out, const char *value);

/* Handlers. Tables end with {0}; those that are not needed are NULL. */
typedef struct {
    const char *name;
    void (*handle)(const hako_value *arguments, hako_result *out);
} hako_tool;
typedef struct {
    const char *uri; /* or a template: variables has the values of its variables then, and is NULL otherwise */
    void (*handle)(const char *uri, const hako_value *variables, hako_result *out);
} hako_resource;
typedef hako_tool hako_prompt;
typedef struct {
    const char *of, *argument; /* a prompt's name or a template, and its argument */
    void (*handle)(const char *value, const hako_value *resolved, hako_result *out);
} hako_completer;
typedef struct {
    const hako_tool *tools;
    const hako_resource *resources, *templates;
    const hako_prompt *prompts;
    const hako_completer *completers;
} hako_handlers;
extern const hako_handlers hako_plugin;

/* The call. */
const hako_value *hako_config(void); /* the plugin's configuration, with defaults filled in */
const hako_value *hako_roots(void);  /* the guest's paths by the host's, for plugins that ask for roots */
const char *hako_locale(void);       /* the caller's language, such as "ja"; "" if it is not known */
bool hako_is_canceled(void);
void hako_progress(double progress, double total, const char *message); /* total 0: unknown */
void hako_updated(const char *uri);
enum { HAKO_DEBUG = -4, HAKO_INFO = 0, HAKO_WARN = 4, HAKO_ERROR = 8 };
void hako_logf(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* HTTP, permission http. headers is JSON, such as {"Accept":["text/plain"]}, or NULL. */
typedef struct {
    const char *code, *message; /* an error: code is not NULL, and the rest is empty */
    int status;
    const hako_value *head; /* "headers", "url", "credential" */
    const char *body;       /* NUL-terminated */
    size_t length;
} hako_response;
hako_response hako_fetch(const char *method, const char *url, const char *headers, const void *body, size_t length);
/* hako_start sends a request and returns at once; hako_wait waits for the answer. A call has at most 8 under way. */
typedef struct {
    int32_t handle; /* negative: the error is in failed */
    hako_response failed;
} hako_pending;
hako_pending hako_start(const char *method, const char *url, const char *headers, const void *body, size_t length);
hako_response hako_wait(hako_pending pending);
const char *hako_header(const hako_response *response, const char *name); /* "" if there is none */

/* SQL, permission sql. args is a JSON array or NULL; blobs has the bytes of its {"blob":n}. The answer is that of
   docs/abi.md: "columns" and "rows", "changes" and "lastInsertId", or "error" with "code" and "message". */
const hako_value *hako_sql_query(const char *sql, const char *args, const void *blobs, size_t length);
const hako_value *hako_sql_exec(const char *sql, const char *args, const void *blobs, size_t length);
const char *hako_sql_blobs(size_t *length); /* the bytes of the last answer's blobs */
const hako_value *hako_sql_begin(bool write); /* NULL, or the answer with "error" */
const hako_value *hako_sql_commit(void);
const hako_value *hako_sql_rollback(void);

#ifndef __wasm__
/* hako_test_call serves a request, such as {"method":"tools/call","name":"greet","arguments":{}}, and returns the response. */
const hako_value *hako_test_call(const char *request);
#endif

#ifdef HAKO_IMPLEMENTATION

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __wasm__
#define HAKO_IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
HAKO_IMPORT("hako:core/1", "take") void hako_host_take(void *p);
HAKO_IMPORT("hako:core/1", "respond") void hako_host_respond(const void *p, size_t length);
HAKO_IMPORT("hako:core/1", "blob") int32_t hako_host_blob(const void *p, size_t length);
HAKO_IMPORT("hako:core/1", "log") void hako_host_log(int32_t level, const void *p, size_t length);
HAKO_IMPORT("hako:core/1", "progress") void hako_host_progress(double progress, double total, const void *p, size_t n);
HAKO_IMPORT("hako:core/1", "updated") void hako_host_updated(const void *p, size_t length);
HAKO_IMPORT("hako:core/1", "canceled") int32_t hako_host_canceled(void);
HAKO_IMPORT("hako:http/1", "request") size_t hako_host_request(const void *head, size_t n, const void *body, size_t m);
HAKO_IMPORT("hako:http/1", "start") int32_t hako_host_start(const void *head, size_t n, const void *body, size_t m);
HAKO_IMPORT("hako:http/1", "wait") size_t hako_host_wait(int32_t handle);
HAKO_IMPORT("hako:http/1", "read") int32_t hako_host_read(int32_t handle, void *p, size_t capacity);
HAKO_IMPORT("hako:http/1", "close") void hako_host_close(int32_t handle);
HAKO_IMPORT("hako:sql/1", "query") size_t hako_host_query(const void *head, size_t n, const void *blobs, size_t m);
HAKO_IMPORT("hako:sql/1", "exec") size_t hako_host_exec(const void *head, size_t n, const void *blobs, size_t m);
HAKO_IMPORT("hako:sql/1", "blobs") size_t hako_host_blobs(void);
HAKO_IMPORT("hako:sql/1", "begin") size_t hako_host_begin(int32_t write);
HAKO_IMPORT("hako:sql/1", "commit") size_t hako_host_commit(void);
HAKO_IMPORT("hako:sql/1", "rollback") size_t hako_host_rollback(void);
#else
/* Without a host: what a request to it would answer is pending. */
static const char *hako_pending_text = "";
static hako_buffer hako_responded;
static int32_t hako_blobs;
static size_t hako_nothing(void) {
    hako_pending_text = "{\"error\":{\"code\":\"network\",\"message\":\"there is no host in a test\"}}";
    return strlen(hako_pending_text);
}
static void hako_host_take(void *p) { memcpy(p, hako_pending_text, strlen(hako_pending_text)); }
static void hako_host_respond(const void *p, size_t length) { hako_write(&hako_responded, p, length); }
static int32_t hako_host_blob(const void *p, size_t n) { return (void)p, (void)n, hako_blobs++; }
static void hako_host_log(int32_t level, const void *p, size_t n) { fprintf(stderr, "%d %.*s\n", level, (int)n, (const char *)p); }
static void hako_host_progress(double d, double t, const void *p, size_t n) { (void)d, (void)t, (void)p, (void)n; }
static void hako_host_updated(const void *p, size_t n) { (void)p, (void)n; }
static int32_t hako_host_canceled(void) { return 0; }
static size_t hako_host_request(const void *h, size_t n, const void *b, size_t m) { return (void)h, (void)n, (void)b, (void)m, hako_nothing(); }
static int32_t hako_host_start(const void *h, size_t n, const void *b, size_t m) {
    return (void)h, (void)n, (void)b, (void)m, hako_pending_text = "{\"code\":\"network\",\"message\":\"there is no host in a test\"}",
           -(int32_t)strlen(hako_pending_text);
}
static size_t hako_host_wait(int32_t handle) { return (void)handle, hako_nothing(); }
static int32_t hako_host_read(int32_t h, void *p, size_t n) { return (void)h, (void)p, (void)n, 0; }
static void hako_host_close(int32_t handle) { (void)handle; }
static size_t hako_host_query(const void *h, size_t n, const void *b, size_t m) { return hako_host_request(h, n, b, m); }
static size_t hako_host_exec(const void *h, size_t n, const void *b, size_t m) { return hako_host_request(h, n, b, m); }
static size_t hako_host_blobs(void) { return 0; }
static size_t hako_host_begin(int32_t write) { return (void)write, hako_nothing(); }
static size_t hako_host_commit(void) { return hako_nothing(); }
static size_t hako_host_rollback(void) { return hako_nothing(); }
#endif

/* Memory of a call: blocks in a list, which the next call frees. */
typedef union hako_block {
    union hako_block *next;
    max_align_t align;
} hako_block;
static hako_block *hako_memory;

void *hako_alloc(size_t size) {
    hako_block *block = size < SIZE_MAX - sizeof *block ? calloc(1, sizeof *block + size) : NULL;
    if (!block) abort();
    block->next = hako_memory;
    hako_memory = block;
    return block + 1;
}

static void hako_free_all(void) {
    while (hako_memory) {
        hako_block *next = hako_memory->next;
        free(hako_memory);
        hako_memory = next;
    }
}

static char *hako_vformat(const char *format, va_list list) {
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    char *text = hako_alloc((size_t)(length < 0 ? 0 : length) + 1);
    vsnprintf(text, (size_t)(length < 0 ? 0 : length) + 1, format, again);
    va_end(again);
    return text;
}

char *hako_format(const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *text = hako_vformat(format, list);
    va_end(list);
    return text;
}

static char *hako_take(size_t length) {
    char *data = hako_alloc(length + 1);
    hako_host_take(data);
    return data;
}

void hako_write(hako_buffer *b, const void *data, size_t length) {
    if (b->length + length + 1 > b->capacity) {
        size_t capacity = 2 * (b->length + length) + 256;
        char *grown = hako_alloc(capacity);
        if (b->length) memcpy(grown, b->data, b->length);
        b->data = grown, b->capacity = capacity;
    }
    if (length) memcpy(b->data + b->length, data, length);
    b->length += length;
    b->data[b->length] = 0;
}

void hako_writef(hako_buffer *b, const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *text = hako_vformat(format, list);
    va_end(list);
    hako_write(b, text, strlen(text));
}

/* hako_rune returns how many bytes the UTF-8 sequence at p has, 0 if it is none. */
static size_t hako_rune(const unsigned char *p, size_t left) {
    size_t n = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2 : *p >= 0xe0 && *p < 0xf0 ? 3 : *p >= 0xf0 && *p < 0xf5 ? 4 : 0;
    if (n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    bool wrong = (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f);
    return wrong ? 0 : n;
}

void hako_write_string(hako_buffer *b, const char *text, size_t length) {
    hako_write(b, "\"", 1);
    for (size_t i = 0, n; i < length; i += n) {
        unsigned char c = (unsigned char)text[i];
        if ((n = hako_rune((const unsigned char *)text + i, length - i)) == 0) {
            hako_write(b, "\xef\xbf\xbd", 3);
            n = 1;
        } else if (c < 0x20 || c == '"' || c == '\\') {
            char escaped[8];
            hako_write(b, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", c));
        } else {
            hako_write(b, text + i, n);
        }
    }
    hako_write(b, "\"", 1);
}

static void hako_write_text(hako_buffer *b, const char *text) { hako_write_string(b, text, strlen(text)); }

void hako_write_value(hako_buffer *b, const hako_value *value) {
    if (!value || value->type == HAKO_NULL) {
        hako_write(b, "null", 4);
    } else if (value->type == HAKO_STRING) {
        hako_write_string(b, value->text, value->length);
    } else if (value->type == HAKO_ARRAY || value->type == HAKO_OBJECT) {
        bool object = value->type == HAKO_OBJECT;
        hako_write(b, object ? "{" : "[", 1);
        for (const hako_value *v = value->first; v; v = v->next) {
            if (object) hako_write_text(b, v->key), hako_write(b, ":", 1);
            hako_write_value(b, v);
            if (v->next) hako_write(b, ",", 1);
        }
        hako_write(b, object ? "}" : "]", 1);
    } else {
        hako_write(b, value->text, value->length);
    }
}

/* The parser of JSON. at is NULL once something was wrong. */
typedef struct {
    const char *at, *end;
    int depth;
} hako_parser;

static void hako_skip(hako_parser *p) {
    while (p->at && p->at < p->end && strchr(" \t\r\n", *p->at) && *p->at) p->at++;
}

static bool hako_accept(hako_parser *p, char c) {
    hako_skip(p);
    if (!p->at || p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static void hako_expect(hako_parser *p, char c) {
    if (!hako_accept(p, c)) p->at = NULL;
}

static uint32_t hako_hex(hako_parser *p) {
    uint32_t rune = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        char c = p->at && p->at < p->end ? *p->at : 0;
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (digit < 0) return p->at = NULL, 0;
        rune = rune << 4 | (uint32_t)digit;
    }
    return rune;
}

static char *hako_put_rune(char *out, uint32_t r) {
    if (r < 0x80) return *out++ = (char)r, out;
    if (r < 0x800) return *out++ = (char)(0xc0 | r >> 6), *out++ = (char)(0x80 | (r & 63)), out;
    if (r >= 0x10000) *out++ = (char)(0xf0 | r >> 18), *out++ = (char)(0x80 | (r >> 12 & 63));
    else *out++ = (char)(0xe0 | r >> 12);
    return *out++ = (char)(0x80 | (r >> 6 & 63)), *out++ = (char)(0x80 | (r & 63)), out;
}

/* hako_escape decodes an escape sequence whose backslash was read. */
static char *hako_escape(hako_parser *p, char *out) {
    const char *letters = "\"\\/bfnrt", *values = "\"\\/\b\f\n\r\t";
    char c = p->at < p->end ? *p->at++ : 0;
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter) return *out++ = values[letter - letters], out;
    if (c != 'u') return p->at = NULL, out;
    uint32_t r = hako_hex(p);
    if (p->at && r >= 0xd800 && r < 0xdc00 && p->end - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u') {
        const char *back = p->at;
        p->at += 2;
        uint32_t low = hako_hex(p);
        if (p->at && low >= 0xdc00 && low < 0xe000) r = 0x10000 + ((r - 0xd800) << 10) + (low - 0xdc00);
        else p->at = back;
    }
    return hako_put_rune(out, r >= 0xd800 && r < 0xe000 ? 0xfffd : r);
}

static const char *hako_parse_string(hako_parser *p, size_t *length) {
    hako_expect(p, '"');
    const char *quote = p->at;
    while (quote && quote < p->end && *quote != '"') quote += *quote == '\\' ? 2 : 1;
    if (!quote || quote >= p->end) return p->at = NULL, "";
    char *text = hako_alloc((size_t)(quote - p->at) + 1), *out = text; /* no escape sequence grows */
    while (p->at && p->at < quote) {
        char c = *p->at++;
        if (c == '\\') out = hako_escape(p, out);
        else if ((unsigned char)c < 0x20) p->at = NULL;
        else *out++ = c;
    }
    if (p->at) p->at = quote + 1;
    *length = (size_t)(out - text);
    return text;
}

/* hako_digits skips digits and returns how many there are. */
static size_t hako_digits(const char **p) {
    size_t n = strspn(*p, "0123456789");
    return *p += n, n;
}

static bool hako_is_number(const char *text) {
    if (*text == '-') text++;
    const char *whole = text;
    size_t n = hako_digits(&text);
    if (n == 0 || (n > 1 && *whole == '0')) return false;
    if (*text == '.' && (text++, hako_digits(&text) == 0)) return false;
    if (*text == 'e' || *text == 'E') {
        text++;
        if (*text == '+' || *text == '-') text++;
        if (hako_digits(&text) == 0) return false;
    }
    return !*text;
}

static hako_value *hako_parse_value(hako_parser *p);

static void hako_parse_list(hako_parser *p, hako_value *list, char close) {
    hako_value **last = &list->first;
    if (hako_accept(p, close)) return;
    do {
        const char *key = NULL;
        size_t length;
        if (close == '}') {
            key = hako_parse_string(p, &length);
            hako_expect(p, ':');
        }
        if (!p->at) return;
        *last = hako_parse_value(p);
        (*last)->key = key;
        last = &(*last)->next;
        list->length++;
    } while (hako_accept(p, ','));
    hako_expect(p, close);
}

static hako_value *hako_parse_value(hako_parser *p) {
    hako_value *value = hako_alloc(sizeof *value);
    hako_skip(p);
    if (!p->at || p->at == p->end || ++p->depth > 1000) return p->at = NULL, value;
    const char *start = p->at;
    if (*start == '"') {
        value->type = HAKO_STRING;
        value->text = hako_parse_string(p, &value->length);
    } else if (*start == '{' || *start == '[') {
        value->type = *start == '{' ? HAKO_OBJECT : HAKO_ARRAY;
        p->at++;
        hako_parse_list(p, value, *start == '{' ? '}' : ']');
    } else {
        while (p->at < p->end && *p->at && !strchr(" \t\r\n,]}", *p->at)) p->at++;
        value->length = (size_t)(p->at - start);
        char *text = hako_alloc(value->length + 1);
        memcpy(text, start, value->length);
        value->text = text;
        if (!strcmp(text, "true") || !strcmp(text, "false")) value->type = HAKO_BOOL;
        else if (hako_is_number(text)) value->type = HAKO_NUMBER;
        else if (strcmp(text, "null")) p->at = NULL;
    }
    p->depth--;
    return value;
}

const hako_value *hako_parse(const char *json, size_t length) {
    hako_parser p = {json, json + length, 0};
    const hako_value *value = hako_parse_value(&p);
    hako_skip(&p);
    return p.at && p.at == p.end ? value : NULL;
}

const hako_value *hako_get(const hako_value *object, const char *key) {
    if (!object || object->type != HAKO_OBJECT) return NULL;
    for (const hako_value *v = object->first; v; v = v->next)
        if (!strcmp(v->key, key)) return v;
    return NULL;
}

static const hako_value *hako_member(const hako_value *object, const char *key, hako_type type) {
    const hako_value *v = hako_get(object, key);
    return v && v->type == type ? v : NULL;
}

const char *hako_string(const hako_value *object, const char *key, const char *otherwise) {
    const hako_value *v = hako_member(object, key, HAKO_STRING);
    return v ? v->text : otherwise;
}

double hako_number(const hako_value *object, const char *key, double otherwise) {
    const hako_value *v = hako_member(object, key, HAKO_NUMBER);
    return v ? strtod(v->text, NULL) : otherwise;
}

int64_t hako_integer(const hako_value *object, const char *key, int64_t otherwise) {
    const hako_value *v = hako_member(object, key, HAKO_NUMBER);
    return !v ? otherwise : strpbrk(v->text, ".eE") ? (int64_t)strtod(v->text, NULL) : (int64_t)strtoll(v->text, NULL, 10);
}

bool hako_bool(const hako_value *object, const char *key, bool otherwise) {
    const hako_value *v = hako_member(object, key, HAKO_BOOL);
    return v ? v->text[0] == 't' : otherwise;
}

/* hako_item opens the next item of a result and leaves it open. */
static hako_buffer *hako_item(hako_result *out, const char *start) {
    hako_writef(&out->items, "%s%s", out->items.length ? "," : "", start);
    return &out->items;
}

static void hako_member_text(hako_buffer *b, const char *key, const char *text) {
    if (!text) return;
    hako_writef(b, ",\"%s\":", key);
    hako_write_text(b, text);
}

void hako_text(hako_result *out, const char *text, size_t length) {
    hako_buffer *b = hako_item(out, "{\"type\":\"text\",\"text\":");
    hako_write_string(b, text, length);
    hako_write(b, "}", 1);
}

void hako_textf(hako_result *out, const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *text = hako_vformat(format, list);
    va_end(list);
    hako_text(out, text, strlen(text));
}

static void hako_data(hako_result *out, const char *type, const char *mime_type, const void *data, size_t length) {
    int32_t index = hako_host_blob(data, length);
    hako_buffer *b = hako_item(out, "{\"type\":");
    hako_write_text(b, type);
    hako_member_text(b, "mimeType", mime_type);
    hako_writef(b, ",\"blob\":%d}", (int)index);
}

void hako_image(hako_result *out, const char *mime_type, const void *data, size_t length) { hako_data(out, "image", mime_type, data, length); }
void hako_audio(hako_result *out, const char *mime_type, const void *data, size_t length) { hako_data(out, "audio", mime_type, data, length); }

void hako_link(hako_result *out, const char *uri, const char *name, const char *mime_type) {
    hako_buffer *b = hako_item(out, "{\"type\":\"resource_link\"");
    hako_member_text(b, "uri", uri);
    hako_member_text(b, "name", name);
    hako_member_text(b, "mimeType", mime_type);
    hako_write(b, "}", 1);
}

void hako_contents(hako_result *out, const char *uri, const char *mime_type, const char *text) {
    hako_buffer *b = hako_item(out, "{\"uri\":");
    hako_write_text(b, uri);
    hako_member_text(b, "mimeType", mime_type);
    hako_member_text(b, "text", text);
    hako_write(b, "}", 1);
}

void hako_contents_bytes(hako_result *out, const char *uri, const char *mime_type, const void *data, size_t length) {
    int32_t index = hako_host_blob(data, length);
    hako_contents(out, uri, mime_type, NULL);
    out->items.length--;
    hako_writef(&out->items, ",\"blob\":%d}", (int)index);
}

void hako_embed(hako_result *out, const char *uri, const char *mime_type, const char *text) {
    hako_result resource = {0};
    hako_contents(&resource, uri, mime_type, text);
    hako_buffer *b = hako_item(out, "{\"type\":\"resource\",\"resource\":");
    hako_write(b, resource.items.data, resource.items.length);
    hako_write(b, "}", 1);
}

void hako_message(hako_result *out, const char *role, const char *text) {
    hako_buffer *b = hako_item(out, "{\"role\":");
    hako_write_text(b, role);
    hako_write(b, ",\"content\":{\"type\":\"text\"", 25);
    hako_member_text(b, "text", text);
    hako_write(b, "}}", 2);
}

void hako_completion(hako_result *out, const char *value) { hako_write_text(hako_item(out, ""), value); }

void hako_fail(hako_result *out, const char *format, ...) {
    va_list list;
    va_start(list, format);
    out->error = hako_vformat(format, list);
    out->is_error = true;
    va_end(list);
}

void hako_error(hako_result *out, const char *code, const char *message) {
    out->code = code;
    hako_fail(out, "%s", message);
}

static const hako_value *hako_request; /* of the call */

static bool hako_is_method(const char *method) { return !strcmp(hako_string(hako_request, "method", ""), method); }

static void hako_respond(hako_result *r) {
    hako_buffer b = {0};
    bool tool = hako_is_method("tools/call");
    if (r->is_error && (!tool || (r->code && !strcmp(r->code, "not-found")))) {
        hako_write(&b, "{\"error\":{\"code\":", 17);
        hako_write_text(&b, r->code ? r->code : "internal");
        hako_member_text(&b, "message", r->error);
        hako_write(&b, "}}", 2);
    } else if (tool) {
        if (r->is_error) {
            hako_result text = {0};
            hako_textf(&text, "%s%s%s", r->code ? r->code : "", r->code ? ": " : "", r->error);
            r->items = text.items;
        }
        hako_writef(&b, "{\"isError\":%s,\"content\":[", r->is_error ? "true" : "false");
        hako_write(&b, r->items.data, r->items.length);
        hako_write(&b, "]", 1);
        if (r->structured.length && !r->is_error) {
            hako_write(&b, ",\"structuredContent\":", 21);
            hako_write(&b, r->structured.data, r->structured.length);
        }
        hako_write(&b, "}", 1);
    } else {
        bool completion = hako_is_method("completion/complete"), prompt = hako_is_method("prompts/get");
        hako_writef(&b, "{\"%s", completion ? "completion\":{\"values\":[" : prompt ? "messages\":[" : "contents\":[");
        hako_write(&b, r->items.data, r->items.length);
        hako_write(&b, "]", 1);
        if (prompt) hako_member_text(&b, "description", r->description);
        hako_write(&b, "}}", completion ? 2 : 1);
    }
    hako_host_respond(b.data, b.length);
}

void hako_panic(const char *format, ...) {
    hako_result out = {0};
    va_list list;
    va_start(list, format);
    char *text = hako_vformat(format, list);
    va_end(list);
    hako_fail(&out, "%s stopped unexpectedly: %s", hako_string(hako_request, "name", "the plugin"), text);
    hako_logf(HAKO_ERROR, "panic: %s", text);
    hako_respond(&out);
    abort();
}

static void hako_not_found(hako_result *out, const char *kind, const char *name) {
    hako_error(out, "not-found", hako_format("this plugin has no handler for the %s %s", kind, name));
}

/* Each entry of every table starts with its name. */
#define HAKO_FIND(table, name)                                  \
    while ((table) && *(const char *const *)(table)) {          \
        if (!strcmp(*(const char *const *)(table), name)) break; \
        (table)++;                                              \
    }

static void hako_serve_named(const hako_tool *table, const char *kind, hako_result *out) {
    const char *name = hako_string(hako_request, "name", "");
    HAKO_FIND(table, name)
    if (table && table->name) table->handle(hako_get(hako_request, "arguments"), out);
    else hako_not_found(out, kind, name);
}

static void hako_serve_resource(hako_result *out) {
    const char *uri = hako_string(hako_request, "uri", ""), *template = hako_string(hako_request, "template", "");
    const hako_resource *t = hako_plugin.templates, *r = hako_plugin.resources;
    HAKO_FIND(t, template)
    HAKO_FIND(r, uri)
    if (t && t->uri) t->handle(uri, hako_get(hako_request, "variables"), out);
    else if (r && r->uri) r->handle(uri, NULL, out);
    else hako_not_found(out, "resource", uri);
}

static void hako_serve_completion(hako_result *out) {
    const hako_value *ref = hako_get(hako_request, "ref"), *argument = hako_get(hako_request, "argument");
    const char *of = hako_string(ref, "name", hako_string(ref, "uri", "")), *name = hako_string(argument, "name", "");
    for (const hako_completer *c = hako_plugin.completers; c && c->of; c++)
        if (!strcmp(c->of, of) && !strcmp(c->argument, name))
            c->handle(hako_string(argument, "value", ""), hako_get(argument, "resolved"), out);
}

static void hako_names(hako_buffer *b, const char *key, const void *table, size_t size) {
    hako_writef(b, "\"%s\":[", key);
    for (const char *entry = table; entry && *(const char *const *)entry; entry += size) {
        if (entry != table) hako_write(b, ",", 1);
        hako_write_text(b, *(const char *const *)entry);
    }
    hako_write(b, "]", 1);
}

static void hako_list_handlers(void) {
    hako_buffer b = {0};
    hako_write(&b, "{\"handlers\":{", 13);
    hako_names(&b, "tools", hako_plugin.tools, sizeof(hako_tool));
    hako_write(&b, ",", 1);
    hako_names(&b, "resources", hako_plugin.resources, sizeof(hako_resource));
    hako_write(&b, ",", 1);
    hako_names(&b, "resourceTemplates", hako_plugin.templates, sizeof(hako_resource));
    hako_write(&b, ",", 1);
    hako_names(&b, "prompts", hako_plugin.prompts, sizeof(hako_prompt));
    hako_write(&b, "}}", 2);
    hako_host_respond(b.data, b.length);
}

static void hako_serve(const char *request, size_t length) {
    hako_result out = {0};
    hako_request = hako_parse(request, length);
    if (hako_is_method("hako/handlers")) {
        hako_list_handlers();
        return;
    }
    if (hako_is_method("tools/call")) hako_serve_named(hako_plugin.tools, "tool", &out);
    else if (hako_is_method("prompts/get")) hako_serve_named(hako_plugin.prompts, "prompt", &out);
    else if (hako_is_method("resources/read")) hako_serve_resource(&out);
    else if (hako_is_method("completion/complete")) hako_serve_completion(&out);
    else hako_not_found(&out, "method", hako_string(hako_request, "method", ""));
    hako_respond(&out);
}

#ifdef __wasm__
__attribute__((export_name("hako_abi_1"))) void hako_abi_1(void) {}

__attribute__((export_name("hako_call"))) int32_t hako_call(size_t length) {
    hako_free_all();
    hako_serve(hako_take(length), length);
    return 0;
}
#else
const hako_value *hako_test_call(const char *request) {
    size_t length = strlen(request);
    char *copy = malloc(length + 1); /* the request may be memory of the call before, which is freed here */
    if (!copy) abort();
    memcpy(copy, request, length + 1);
    hako_free_all();
    hako_responded = (hako_buffer){0};
    hako_serve(copy, length);
    free(copy);
    return hako_parse(hako_responded.data, hako_responded.length);
}
#endif

const hako_value *hako_config(void) { return hako_get(hako_request, "config"); }
const hako_value *hako_roots(void) { return hako_get(hako_request, "roots"); }
const char *hako_locale(void) { return hako_string(hako_request, "locale", ""); }
bool hako_is_canceled(void) { return hako_host_canceled() != 0; }
void hako_progress(double progress, double total, const char *message) { hako_host_progress(progress, total, message, strlen(message)); }
void hako_updated(const char *uri) { hako_host_updated(uri, strlen(uri)); }

void hako_logf(int level, const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *text = hako_vformat(format, list);
    va_end(list);
    hako_host_log(level, text, strlen(text));
}

static hako_buffer hako_head(const char *method, const char *url, const char *headers) {
    hako_buffer head = {0};
    hako_write(&head, "{\"method\":", 10);
    hako_write_text(&head, method);
    hako_member_text(&head, "url", url);
    if (headers) hako_writef(&head, ",\"headers\":%s", headers);
    hako_write(&head, "}", 1);
    return head;
}

static hako_response hako_failed(const hako_value *error) {
    return (hako_response){
        .code = hako_string(error, "code", "internal"), .message = hako_string(error, "message", ""), .body = ""};
}

static hako_response hako_receive(size_t length) {
    const hako_value *head = hako_parse(hako_take(length), length), *error = hako_get(head, "error");
    if (error) return hako_failed(error);
    hako_buffer body = {0};
    int32_t handle = (int32_t)hako_integer(head, "handle", 0), n;
    char *chunk = hako_alloc(1 << 16);
    while ((n = hako_host_read(handle, chunk, 1 << 16)) > 0) hako_write(&body, chunk, (size_t)n);
    hako_host_close(handle);
    if (n < 0) return hako_failed(hako_parse(hako_take((size_t)-n), (size_t)-n));
    hako_write(&body, "", 0);
    return (hako_response){.status = (int)hako_integer(head, "status", 0), .head = head, .body = body.data, .length = body.length};
}

hako_response hako_fetch(const char *method, const char *url, const char *headers, const void *body, size_t length) {
    hako_buffer head = hako_head(method, url, headers);
    return hako_receive(hako_host_request(head.data, head.length, body, length));
}

hako_pending hako_start(const char *method, const char *url, const char *headers, const void *body, size_t length) {
    hako_buffer head = hako_head(method, url, headers);
    hako_pending pending = {.handle = hako_host_start(head.data, head.length, body, length)};
    if (pending.handle < 0) {
        size_t n = (size_t)-pending.handle;
        pending.failed = hako_failed(hako_parse(hako_take(n), n));
    }
    return pending;
}

hako_response hako_wait(hako_pending pending) {
    return pending.handle < 0 ? pending.failed : hako_receive(hako_host_wait(pending.handle));
}

const char *hako_header(const hako_response *response, const char *name) {
    const hako_value *values = hako_get(hako_get(response->head, "headers"), name);
    return values && values->type == HAKO_ARRAY && values->first && values->first->type == HAKO_STRING ? values->first->text : "";
}

static hako_buffer hako_statement(const char *sql, const char *args) {
    hako_buffer head = {0};
    hako_write(&head, "{\"sql\":", 7);
    hako_write_text(&head, sql);
    if (args) hako_writef(&head, ",\"args\":%s", args);
    hako_write(&head, "}", 1);
    return head;
}

static const hako_value *hako_answer(size_t length) { return length ? hako_parse(hako_take(length), length) : NULL; }

const hako_value *hako_sql_query(const char *sql, const char *args, const void *blobs, size_t length) {
    hako_buffer head = hako_statement(sql, args);
    return hako_answer(hako_host_query(head.data, head.length, blobs, length));
}

const hako_value *hako_sql_exec(const char *sql, const char *args, const void *blobs, size_t length) {
    hako_buffer head = hako_statement(sql, args);
    return hako_answer(hako_host_exec(head.data, head.length, blobs, length));
}

const char *hako_sql_blobs(size_t *length) {
    *length = hako_host_blobs();
    return hako_take(*length);
}

const hako_value *hako_sql_begin(bool write) { return hako_answer(hako_host_begin(write)); }
const hako_value *hako_sql_commit(void) { return hako_answer(hako_host_commit()); }
const hako_value *hako_sql_rollback(void) { return hako_answer(hako_host_rollback()); }

#endif /* HAKO_IMPLEMENTATION */
#endif /* HAKO_H */
