/* The plugin that hako plugin conformance tests the C PDK by. */
#define HAKO_IMPLEMENTATION
#include "hako.h"

#include <unistd.h>

static unsigned char all[256];

static const unsigned char *all_bytes(void) {
    for (int i = 0; i < 256; i++) all[i] = (unsigned char)i;
    return all;
}

static void echo(const hako_value *in, hako_result *out) {
    const hako_value *text = hako_get(in, "text");
    hako_text(out, text->text, text->length);
}

static void add(const hako_value *in, hako_result *out) {
    hako_writef(&out->structured, "{\"sum\":%lld}", (long long)(hako_integer(in, "a", 0) + hako_integer(in, "b", 0)));
}

static void blocks(const hako_value *in, hako_result *out) {
    (void)in;
    hako_textf(out, "text");
    hako_image(out, "image/png", all_bytes(), 256);
    hako_audio(out, "audio/wav", all_bytes(), 256);
    hako_link(out, "conformance://text", "text", "text/plain");
    hako_embed(out, "conformance://text", "text/plain", "embedded");
}

static void bytes(const hako_value *in, hako_result *out) {
    hako_buffer b = {0};
    for (const hako_value *v = hako_get(in, "bytes")->first; v; v = v->next) {
        char byte = (char)atoi(v->text);
        hako_write(&b, &byte, 1);
    }
    hako_text(out, b.data, b.length);
}

static void fail(const hako_value *in, hako_result *out) { hako_fail(out, "%s", hako_string(in, "message", "")); }

static void panics(const hako_value *in, hako_result *out) {
    (void)out;
    hako_panic("%s", hako_string(in, "message", ""));
}

static void progress(const hako_value *in, hako_result *out) {
    int steps = (int)hako_integer(in, "steps", 0);
    for (int i = 1; i <= steps; i++) hako_progress(i, steps, hako_format("step %d", i));
    hako_textf(out, "done");
}

static void logs(const hako_value *in, hako_result *out) {
    hako_logf(HAKO_INFO, "%s", hako_string(in, "message", ""));
    hako_textf(out, "logged");
}

static void config(const hako_value *in, hako_result *out) {
    (void)in;
    hako_textf(out, "%s", hako_string(hako_config(), "greeting", ""));
}

static void locale(const hako_value *in, hako_result *out) {
    (void)in;
    hako_textf(out, "%s", hako_locale());
}

static void count(const hako_value *in, hako_result *out) {
    static int calls;
    (void)in;
    hako_textf(out, "%d", ++calls);
}

static void randoms(const hako_value *in, hako_result *out) {
    unsigned long long n = 0;
    (void)in;
    if (getentropy(&n, sizeof n)) hako_panic("no randomness");
    hako_textf(out, "%llu", n);
}

static void update(const hako_value *in, hako_result *out) {
    hako_updated(hako_string(in, "uri", ""));
    hako_textf(out, "updated");
}

static void http(const hako_value *in, hako_result *out) {
    const char *body = hako_string(in, "body", "");
    hako_response r = hako_fetch(hako_string(in, "method", ""), hako_string(in, "url", ""), NULL, body, strlen(body));
    if (r.code) {
        hako_error(out, r.code, r.message);
        return;
    }
    const char *type = hako_header(&r, "Content-Type");
    hako_writef(&out->structured, "{\"status\":%d,\"type\":", r.status);
    hako_write_string(&out->structured, type, strlen(type));
    hako_writef(&out->structured, ",\"body\":");
    hako_write_string(&out->structured, r.body, r.length);
    hako_writef(&out->structured, "}");
}

static void parallel(const hako_value *in, hako_result *out) {
    hako_pending started[8];
    int n = 0;
    for (const hako_value *url = hako_get(in, "urls")->first; url && n < 8; url = url->next)
        started[n++] = hako_start("GET", url->text, NULL, NULL, 0);
    hako_buffer b = {0};
    for (int i = 0; i < n; i++) hako_writef(&b, "%s%s", i ? "|" : "", hako_wait(started[i]).body);
    hako_text(out, b.data, b.length);
}

static bool failed(const hako_value *answer, hako_result *out) {
    const hako_value *error = hako_get(answer, "error");
    if (error) hako_error(out, hako_string(error, "code", ""), hako_string(error, "message", ""));
    return error != NULL;
}

static void exec(const hako_value *in, hako_result *out) {
    const hako_value *answer = hako_sql_exec(hako_string(in, "sql", ""), NULL, NULL, 0);
    if (!failed(answer, out)) hako_textf(out, "%lld", (long long)hako_integer(answer, "changes", 0));
}

static void query(const hako_value *in, hako_result *out) {
    hako_buffer args = {0};
    hako_writef(&args, "[");
    hako_write_value(&args, hako_get(in, "text"));
    hako_writef(&args, "]");
    const hako_value *answer = hako_sql_query(hako_string(in, "sql", ""), args.data, NULL, 0);
    if (failed(answer, out)) return;
    const hako_value *value = hako_get(answer, "rows")->first->first;
    hako_text(out, value->text, value->length);
}

static size_t blobs_of(const hako_value *row) {
    size_t length = 0;
    for (const hako_value *value = row->first; value; value = value->next) length += (size_t)hako_integer(value, "blob", 0);
    return length;
}

static void copy(const hako_value *in, hako_result *out) {
    const hako_value *answer = hako_sql_query(hako_string(in, "sql", ""), NULL, NULL, 0);
    if (failed(answer, out)) return;
    size_t length;
    const char *blobs = hako_sql_blobs(&length);
    const hako_value *row = hako_get(answer, "rows")->first;
    for (; row->next; row = row->next) blobs += blobs_of(row);
    hako_buffer args = {0};
    hako_write_value(&args, row);
    answer = hako_sql_query(hako_string(in, "into", ""), args.data, blobs, blobs_of(row));
    if (failed(answer, out)) return;
    const hako_value *value = hako_get(answer, "rows")->first->first;
    hako_text(out, value->text, value->length);
}

static void transaction(const hako_value *in, hako_result *out) {
    const hako_value *answer = hako_sql_begin(true);
    if (failed(answer, out)) return;
    const hako_value *done = hako_sql_exec(hako_string(in, "sql", ""), NULL, NULL, 0);
    if (failed(done, out)) return; /* the end of the call undoes it */
    answer = hako_bool(in, "keep", false) ? hako_sql_commit() : hako_sql_rollback();
    if (!failed(answer, out)) hako_textf(out, "%lld", (long long)hako_integer(done, "changes", 0));
}

static void text(const char *uri, const hako_value *variables, hako_result *out) {
    (void)variables;
    hako_contents(out, uri, "text/plain", "a text");
}

static void binary(const char *uri, const hako_value *variables, hako_result *out) {
    (void)variables;
    hako_contents_bytes(out, uri, "application/octet-stream", all_bytes(), 256);
}

static void item(const char *uri, const hako_value *variables, hako_result *out) {
    hako_contents(out, uri, "text/plain", hako_format("item %s", hako_string(variables, "id", "")));
}

static void greet(const hako_value *in, hako_result *out) {
    hako_message(out, "user", hako_format("Greet %s.", hako_string(in, "name", "")));
}

static void complete(const char *value, const hako_value *resolved, hako_result *out) {
    (void)resolved;
    hako_completion(out, hako_format("%s1", value));
    hako_completion(out, hako_format("%s2", value));
}

static const hako_tool tools[] = {
    {"echo", echo},     {"add", add},           {"blocks", blocks},   {"bytes", bytes}, {"fail", fail},     {"panic", panics},
    {"log", logs},      {"progress", progress}, {"config", config},   {"count", count}, {"locale", locale}, {"random", randoms},
    {"update", update}, {"http", http},         {"parallel", parallel}, {"exec", exec}, {"query", query},
    {"copy", copy},     {"transaction", transaction},               {0},
};
static const hako_resource resources[] = {{"conformance://text", text}, {"conformance://bytes", binary}, {0}};
static const hako_resource templates[] = {{"conformance://item/{id}", item}, {0}};
static const hako_prompt prompts[] = {{"greet", greet}, {0}};
static const hako_completer completers[] = {{"greet", "name", complete}, {0}};
const hako_handlers hako_plugin = {tools, resources, templates, prompts, completers};
