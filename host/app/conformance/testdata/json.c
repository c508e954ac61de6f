/* The tool json: for each text, 1 if hako_parse takes it for JSON and 0 if not. */
#define HAKO_IMPLEMENTATION
#include "hako.h"

static void json(const hako_value *in, hako_result *out) {
    hako_buffer answer = {0};
    for (const hako_value *text = hako_get(in, "texts")->first; text; text = text->next)
        hako_write(&answer, hako_parse(text->text, text->length) ? "1" : "0", 1);
    hako_text(out, answer.data, answer.length);
}

static const hako_tool tools[] = {{"json", json}, {0}};
const hako_handlers hako_plugin = {.tools = tools};

#ifndef __wasm__
/* Natively, the request is standard input, and memory of a call before, which hako_test_call frees. */
int main(void) {
    hako_buffer request = {0};
    char chunk[4096];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, stdin)) > 0;) hako_write(&request, chunk, n);
    const hako_value *content = hako_get(hako_test_call(request.data), "content");
    puts(content ? hako_string(content->first, "text", "") : "no content");
}
#endif
