// The plugin code: QuickJS-ng as a guest of ABI 1 (docs/abi.md). What programs see is in prelude.js.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prelude.h"
#include "quickjs.h"

#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
IMPORT("hako:core/1", "take") void host_take(void *p);
IMPORT("hako:core/1", "respond") void host_respond(const void *p, uint32_t length);
IMPORT("hako:tools/1", "start") int32_t host_start(const void *p, uint32_t length);
IMPORT("hako:tools/1", "wait") uint32_t host_wait(void);
IMPORT("hako:tools/1", "list") uint32_t host_list(const void *p, uint32_t length);

// maxStack is how much of the stack of 1 MiB programs may use, in bytes.
enum { maxStack = 768 * 1024 };

static JSRuntime *runtime;
static JSContext *context;
static JSValue serve, settle, end, fail; // of the prelude
static int running;                // calls that the program has started and that have not ended
static int answered;

// taken returns a string of the host, whose length it has returned.
static JSValue taken(uint32_t length) {
    char *text = malloc((size_t)length + 1);
    if (!text) return JS_ThrowOutOfMemory(context);
    host_take(text);
    text[length] = 0;
    JSValue value = JS_NewStringLen(context, text, length);
    free(text);
    return value;
}

// start starts a call and returns its handle, or the error as JSON.
static JSValue js_start(JSContext *c, JSValueConst this, int argc, JSValueConst *argv) {
    size_t length;
    const char *call = JS_ToCStringLen(c, &length, argv[0]);
    if (!call) return JS_EXCEPTION;
    int32_t handle = host_start(call, length);
    JS_FreeCString(c, call);
    if (handle < 0) return taken(-handle);
    running++;
    return JS_NewInt32(c, handle);
}

static JSValue js_list(JSContext *c, JSValueConst this, int argc, JSValueConst *argv) {
    size_t length;
    const char *query = JS_ToCStringLen(c, &length, argv[0]);
    if (!query) return JS_EXCEPTION;
    uint32_t n = host_list(query, length);
    JS_FreeCString(c, query);
    return taken(n);
}

// evaluate evaluates a program, whose errors name lines of "program".
static JSValue js_evaluate(JSContext *c, JSValueConst this, int argc, JSValueConst *argv) {
    size_t length;
    const char *code = JS_ToCStringLen(c, &length, argv[0]);
    if (!code) return JS_EXCEPTION;
    JSValue value = JS_Eval(c, code, length, "program", JS_EVAL_TYPE_GLOBAL);
    JS_FreeCString(c, code);
    return value;
}

static JSValue js_respond(JSContext *c, JSValueConst this, int argc, JSValueConst *argv) {
    size_t length;
    const char *response = JS_ToCStringLen(c, &length, argv[0]);
    if (!response) return JS_EXCEPTION;
    answered = 1;
    host_respond(response, length);
    JS_FreeCString(c, response);
    return JS_UNDEFINED;
}

// push appends to an array without the setters and methods that programs may put on the prototype.
static JSValue js_push(JSContext *c, JSValueConst this, int argc, JSValueConst *argv) {
    int64_t length;
    if (JS_GetLength(c, argv[0], &length) < 0) return JS_EXCEPTION;
    if (JS_DefinePropertyValueUint32(c, argv[0], length, JS_DupValue(c, argv[1]), JS_PROP_C_W_E) < 0) return JS_EXCEPTION;
    return JS_UNDEFINED;
}

// random replaces Math.random: the engine's own generator is seeded before the first call, and all calls start from its
// state then.
static JSValue js_random(JSContext *c, JSValueConst this, int argc, JSValueConst *argv) {
    uint64_t bits;
    getentropy(&bits, sizeof bits);
    return JS_NewFloat64(c, (double)(bits >> 11) * 0x1p-53);
}

// stop ends the guest with the pending exception on standard error, which is the log.
static void stop(void) {
    JSValue exception = JS_GetException(context);
    const char *text = JS_ToCString(context, exception);
    fprintf(stderr, "%s\n", text ? text : "out of memory");
    abort();
}

// called calls a function of the prelude with an argument, which it frees. It returns 0 if an exception is pending.
static int called(JSValueConst function, JSValue argument) {
    if (JS_IsException(argument)) return 0;
    JSValue value = JS_Call(context, function, JS_UNDEFINED, 1, (JSValueConst *)&argument);
    JS_FreeValue(context, argument);
    if (JS_IsException(value)) return 0;
    JS_FreeValue(context, value);
    return 1;
}

// report answers with the pending exception, as an error of the program with the calls that were made.
static void report(void) {
    if (!called(fail, JS_GetException(context))) stop();
}

static void property(JSValueConst object, const char *name, JSCFunction *function) {
    JS_SetPropertyStr(context, object, name, JS_NewCFunction(context, function, name, 1));
}

__attribute__((constructor)) static void begin(void) {
    runtime = JS_NewRuntime();
    JS_SetMaxStackSize(runtime, maxStack);
    context = JS_NewContext(runtime);
    JSValue global = JS_GetGlobalObject(context), math = JS_GetPropertyStr(context, global, "Math");
    property(math, "random", js_random);
    JS_FreeValue(context, math);
    JS_FreeValue(context, global);
    JSValue host = JS_NewObject(context);
    property(host, "start", js_start);
    property(host, "list", js_list);
    property(host, "evaluate", js_evaluate);
    property(host, "respond", js_respond);
    property(host, "push", js_push);
    JSValue prelude = JS_Eval(context, (const char *)prelude_js, prelude_js_len, "prelude", JS_EVAL_TYPE_GLOBAL);
    if (JS_IsException(prelude)) stop();
    JSValue functions = JS_Call(context, prelude, JS_UNDEFINED, 1, (JSValueConst *)&host);
    if (JS_IsException(functions)) stop();
    JS_FreeValue(context, host);
    serve = JS_GetPropertyStr(context, functions, "serve");
    settle = JS_GetPropertyStr(context, functions, "settle");
    end = JS_GetPropertyStr(context, functions, "end");
    fail = JS_GetPropertyStr(context, functions, "fail");
    JS_FreeValue(context, functions);
    JS_FreeValue(context, prelude);
    JS_RunGC(runtime);
}

__attribute__((export_name("hako_abi_1"))) void hako_abi_1(void) {}

__attribute__((export_name("hako_call"))) int32_t hako_call(uint32_t length) {
    running = answered = 0;
    JS_UpdateStackTop(runtime);
    if (!called(serve, taken(length))) report();
    while (!answered) {
        JSContext *c;
        int more;
        while ((more = JS_ExecutePendingJob(runtime, &c)) > 0 && !answered) {}
        if (answered) break;
        int done;
        if (more < 0) {
            done = 0; // the job threw, such as the callback of a FinalizationRegistry
        } else if (running > 0) {
            running--;
            done = called(settle, taken(host_wait()));
        } else {
            done = called(end, JS_UNDEFINED);
        }
        if (!done) report();
    }
    return 0;
}
