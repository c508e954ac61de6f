package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// codePlugin is the shipped plugin code.
func codePlugin(t testing.TB) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join(guesttest.Root(), "plugins", "code", "code.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(guesttest.Root(), "manifests", "code.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if wasm, err = wasmfile.Embed(wasm, map[string][]byte{abi.ManifestSection: text}); err != nil {
		t.Fatal(err)
	}
	return wasm
}

// coder is a host with the plugin code and the tools greet, wait and look.
func coder(t *testing.T) *world {
	t.Helper()
	w, _ := composed(t, "rules: [{name: not for programs, action: deny, tools: [look], via: [code], when: 'size(arguments) == 0'}]", `"*"`)
	w.put("code.wasm", codePlugin(t))
	w.load()
	w.approve("code.wasm", nil)
	w.load()
	w.prepare()
	return w
}

// run runs a program and returns the texts of the result.
func (w *world) run(code string) (text string, failed bool) {
	w.t.Helper()
	arguments, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		w.t.Fatal(err)
	}
	result, err := w.Call(w.t.Context(), &pipeline.Call{
		Caller:  pipeline.Caller{Frontend: pipeline.FrontendTerminal, User: "aki"},
		Request: abi.Request{Method: abi.CallTool, Name: "run_code", Arguments: arguments}})
	if err != nil {
		w.t.Fatal(err)
	}
	var texts []string
	for _, block := range result.Response.Content {
		texts = append(texts, block.Text)
	}
	return strings.Join(texts, "\n"), result.Response.IsError
}

// usage is what messages say of how tools are called.
const usage = "tools are called as tools.NAME({...}), with the names and arguments that find_tools shows"

func TestCode(t *testing.T) {
	t.Parallel()
	w := coder(t)
	for _, test := range []struct{ code, want string }{
		{`1 + 1`, "2"},
		{`"海"`, "海"},
		{`({a: [1, 2n, null, undefined]})`, `{"a":[1,"2",null,null]}`},
		{`return 5`, "5"},
		{"const a = 2;\nconst b = 3;\nreturn a * b", "6"},
		{`async () => { return 7 }`, "7"},
		{`() => 8`, "8"},
		{"```js\nreturn 9\n```", "9"},
		{"```\n10\n```", "10"},
		{"```js\n11;\n```\n\nIt counts.", "11"},
		{"Here is the program:\n\n```typescript\nreturn 12\n```", "12"},
		{"const a = 13 // ```js\nreturn a // ```", "13"}, // is JavaScript
		{`1 + 1;`, "2"},
		{`(async () => { return 14 })();`, "14"},
		{`await tools.greet({name: "Aki"}); // greets`, "The program returned nothing: put return before its last value."},
		{`async (tools) => tools.greet({name: "Aki"})`, "Hello, Aki"},
		{`new Map([["a", new Set([1])]])`, `[["a",[1]]]`},
		{`const p = tools.greet({name: "a"}); await p; return {p}`, `{"p":"(a promise: put await before it)"}`},
		{`const all = await Promise.allSettled([tools.greet({name: "a"}), tools.greet({})]); return [all[0], all[1].reason.message.slice(0, 30)]`,
			`[{"status":"fulfilled","value":"Hello, a"},"the arguments of greet are not"]`},
		{`try { null.x } catch (error) { return {error} }`, `{"error":{"name":"TypeError","message":"cannot read property 'x' of null"}}`},
		{`const a = {}; a.a = a; console.log(a, tools); return 1`, "1\nConsole output:\n(cannot be shown: circular reference) " +
			"(cannot be shown: a program cannot list tools: " + usage + ")"},
		{`1 // a comment`, "1"},
		{`const x = 1`, "The program returned nothing: put return before its last value."},
		{`tools.greet({name: "Aki"})`, "Hello, Aki"},
		{`await tools.greet({name: "Aki"})`, "Hello, Aki"},
		{`const all = await Promise.all(["a","b","c"].map(name => tools.greet({name}))); return all.join("; ")`,
			"Hello, a; Hello, b; Hello, c"},
		{`let n = 0; for (let i = 0; i < 12; i++) n += (await tools.greet({name: "x"})).length; return n`, "96"},
		{`console.log("one", {a: 1}, [2]); console.error(new TypeError("no")); return 1`,
			"1\nConsole output:\none {\"a\":1} [2]\nTypeError: no"},
		{`try { await tools.greet({name: 1}) } catch (e) { return [e instanceof ToolError, e.tool, e.code] }`,
			`[true,"greet","invalid"]`},
		{`new Date(0).toISOString()`, "1970-01-01T00:00:00.000Z"},
		{`typeof fetch + typeof require + typeof process + typeof std + typeof os + typeof scriptArgs`,
			strings.Repeat("undefined", 6)},
	} {
		if got, failed := w.run(test.code); got != test.want || failed {
			t.Errorf("%s\n gives %q, %v\n want  %q", test.code, got, failed, test.want)
		}
	}
	if a, _ := w.run(`Math.random()`); a != "" {
		if b, _ := w.run(`Math.random()`); a == b {
			t.Error("two calls draw the same random numbers")
		}
	}
}

func TestCodeFails(t *testing.T) {
	t.Parallel()
	w := coder(t)
	for _, test := range []struct{ code, want string }{
		{`retrn 5`, "SyntaxError: "},
		{"const a = 1;\nconst b = ;\nreturn a", "(line 2: const b = ;)\nThe code must be plain JavaScript: no types of TypeScript"},
		{`const a: string = "x"; return a`, "The code must be plain JavaScript: no types of TypeScript"},
		{`import {tools} from "hako"; return 1`, "no import or export"},
		{`["a"].map(name => await tools.greet({name}))`, "await only in async functions"},
		{"```js\nreturn 1\n```\nor\n```js\nreturn 2\n```", "SyntaxError: there are several code blocks"},
		{"const a = 1;\n\nnull.x", "TypeError: cannot read property 'x' of null (line 3: null.x)"},
		{`const a = {}; ` + strings.Repeat("a.b = 1; ", 40) + `a.c.d; return "the end of the line"`,
			`a.b = 1; a.c.d; return "the end of the line")`},
		{`throw 7`, "7"},
		{`throw {code: 5, reason: "none"}`, `{"code":5,"reason":"none"}`},
		{`throw {get name() { throw 1 }}`, "(cannot be shown: 1)"},
		{`greet({name: "x"})`, "ReferenceError: greet is not defined (line 1: greet({name: \"x\"}))\nThere are JavaScript's own objects, tools and console;" +
			" no modules, files, network or timers. And " + usage},
		{`tools.hello.greet({name: "x"})`, "TypeError: there is no tools.hello.greet: " + usage},
		{`tools.call("greet", {})`, "TypeError: tools.call takes one object with its arguments: " + usage},
		{`Object.keys(tools)`, "TypeError: a program cannot list tools: " + usage},
		{`"greet" in tools`, "TypeError: a program cannot list tools: " + usage},
		{`tools.zzzz({})`, `unknown tool "zzzz": ` + usage + " (line 1: tools.zzzz({}))"},
		{"await tools.greet({name: \"x\"})\nawait tools.greet({})", "call it again (line 2: await tools.greet({}))"},
		{`tools.gret({name: "x"})`, `ToolError: unknown tool "gret": did you mean greet?`},
		{`tools.gre_et({name: "x"})`, "did you mean greet?\n\nTools that there are:\n/** Greets */\ntools.greet("},
		{`tools.greeting({name: "x"})`, "tools.greet(args: { name: string }): Promise<any>"},
		{`tools.greet("x")`, "TypeError: tools.greet takes one object with its arguments"},
		{`tools.look()`, "ToolError: look is not allowed: the policy's rule \"not for programs\" denies it"},
		{`tools.run_code({code: "1"})`, "a tool cannot be called by another"},
		{"await tools.greet({name: \"x\"});\nthrow new Error(\"late\")",
			"Error: late (line 2: throw new Error(\"late\"))\n\nCalls that the program made before, whose effects remain:\ngreet: ok"},
		{`new Promise(() => {})`, "Error: the program waits for a promise that nothing settles"},
		{`"x".repeat(40000)`, "The result has 40000 characters and may have 32768: return less of it. It is a string of 40000 characters."},
		{`Array.from({length: 9000}, (_, i) => ({id: i, name: "a"}))`,
			"It is a list of 9000, the first is an object with id (number), name (a string of 1 characters)."},
		{`const a = {}; a.a = a; return a`, "TypeError: circular reference"},
		{`throw new Error("x".repeat(40000))`, "x… (40007 characters) (line 1: throw new Error(\"x\".repeat(40000)))"},
		{`throw "x".repeat(5e6)`, "x… (5000000 characters)"},
		{`await tools.greet({name: "a"}); throw new Error("x".repeat(5e6))`, "effects remain:\ngreet: ok"},
		{`return {["k".repeat(41)]: "x".repeat(40000)}`,
			"It is an object with " + strings.Repeat("k", 40) + "… (a string of 40000 characters)."},
		{`await tools.greet({name: "a"}); await tools.greet({name: "b"}); return "x".repeat(40000)`,
			"It is a string of 40000 characters.\n\nCalls that the program made before, whose effects remain:\ngreet: ok (2 times)"},
		{`await tools.greet({name: "a"}); await tools.greet({name: "b"}); for (;;) {}`,
			"limits.cpu\n\nCalls that it made before, whose effects remain:\ngreet: ok (2 times)"},
		{`await Promise.all(Array.from({length: 51}, () => tools.greet({name: "x"})))`,
			"ToolError: one call may call other tools 50 times (limits.calls)"},
	} {
		if got, failed := w.run(test.code); !strings.Contains(got, test.want) || !failed {
			t.Errorf("%s\n gives %q, %v\n want  %q", test.code, got, failed, test.want)
		}
	}
}

// TestJobThatThrows: an error outside of the program's own promises is an error of the program, with the calls made.
func TestJobThatThrows(t *testing.T) {
	t.Parallel()
	w := coder(t)
	const before = `await tools.greet({name: "a"}); `
	for _, test := range []struct{ name, code, want string }{
		{"finalizer", `globalThis.f = new FinalizationRegistry(() => { throw new Error("thrown") }); f.register({}, 1); await 1; await tools.greet({name: "b"})`,
			"Error: thrown (line 1: "},
		{"finalizer, while a call runs", `tools.wait({}); globalThis.f = new FinalizationRegistry(() => { throw 7 }); f.register({}, 1); await 1; await 1`, "7"},
		{"hint", `const p = tools.gre_et({}); Object.prototype.toJSON = () => "x"
			try { await p } finally { delete Object.prototype.toJSON }`, `ToolError: unknown tool "gre_et"`},
		{"hint, of an error of all objects", `Object.prototype.error = {code: "x", message: "polluted"}; await tools.gre_et({})`,
			"did you mean greet?\n\nTools that there are:"},
		{"toJSON that throws", `Object.prototype.toJSON = () => { throw new Error("encoded") }; throw new Error("own")`, "Error: own"},
		{"species", `Object.defineProperty(Array, Symbol.species, {get() { throw new Error("species") }}); throw new Error("own")`, "Error: own"},
		{"species, in settle", `Object.defineProperty(Array, Symbol.species, {get() { throw new Error("species") }})
			return [await tools.greet({name: "b"})].x.y`, "TypeError: cannot read property 'y'"},
		{"setter of all arrays", `Object.defineProperty(Array.prototype, "1", {set() { throw new Error("setter") }}); throw new Error("own")`, "Error: own"},
	} {
		got, failed := w.run(before + test.code)
		if !strings.Contains(got, test.want) || !strings.Contains(got, "effects remain:\ngreet: ok") || !failed {
			t.Errorf("%s: gives %.300q, %v, want %q and the call before", test.name, got, failed, test.want)
		}
	}
}

// TestErrorsAreBounded: everything that a failing program makes long is cut, so errors keep to max_result too.
func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()
	w := coder(t)
	const most = 32768 + 8192 // the message; its line, the list of calls, and the console output
	for _, code := range []string{
		`throw new Error("x".repeat(1e5))`,
		`throw "x".repeat(1e5)`,
		`const e = new Error("x"); e.name = "n".repeat(1e5); throw e`,
		`await tools.greet({name: 1, more: "x".repeat(1e5)})`,
		`await tools["x".repeat(1e5)]({})`,
		`tools["x".repeat(1e5)]({}); return 1`,
		`console.log("x".repeat(1e5)); throw new Error("x".repeat(1e5))`,
		`return Object.fromEntries(Array.from({length: 30}, (_, i) => [i + "k".repeat(1e4), i]))`,
		`const grow = depth => depth ? Object.fromEntries(Array.from({length: 14}, (_, i) => ["k".repeat(60) + i, grow(depth - 1)])) : 1; return grow(4)`,
	} {
		if got, _ := w.run(code); len(got) > most {
			t.Errorf("%s\n gives %d bytes: %.200q", code, len(got), got)
		}
	}
}

// hostilePrograms attack the engine or what is between it and the host. Each has what its result contains.
// docs/plugins/code.md has their classes.
var hostilePrograms = []struct{ class, name, code, want string }{
	{"hooks", "globals of the glue", `"found " + Object.getOwnPropertyNames(globalThis).filter(n => /start|settle|serve|respond|evaluate|list|host/i.test(n)).length`, "found 0"},
	{"hooks", "stack frames", `Error.prepareStackTrace = (e, frames) => frames.map(f => f.getFunction()); return "stack is a " + typeof new Error().stack`, "stack is a string"},
	{"hooks", "frames of the prelude", `let got = "none"; Object.defineProperty(Error, "prepareStackTrace", {value: (_, f) => { got = f }}); return got`, "not configurable"},
	{"hooks", "caller of toJSON", `await tools.greet({name: {toJSON() { return arguments.callee?.caller ? "leak" : "none" }}})`, "TypeError"},
	{"hooks", "caller of a getter", `function f() { return String(f.caller) + String(f.arguments) } return tools.greet({get name() { return f() }})`, "Hello, undefinedundefined"},
	{"hooks", "source of a function", `tools.greet.toString().length + ":" + console.log.toString().includes("start")`, "33:false"},
	{"hooks", "arguments of bound functions", `Function.prototype.call = Function.prototype.apply = Function.prototype.bind = function () { globalThis.got = [...arguments]; return this }; console.log("x"); await tools.greet({name: "x"}); return typeof globalThis.got`, "undefined"},
	{"hooks", "species of arrays", `let got = []; Object.defineProperty(Array, Symbol.species, {value: function (n) { got.push(n); return [] }}); console.log("a", "b"); return got.length`, "0"},
	{"hooks", "setter of Array.prototype", `let got; Object.defineProperty(Array.prototype, "0", {set(v) { got = v }, configurable: true}); const p = tools.greet({name: "x"}); delete Array.prototype[0]; await p; return "found " + Object.keys(got ?? {}).filter(k => /start|host|respond|settle/.test(k)).length`, "found 0"},
	{"prototypes", "polluted prototype", `Object.prototype.error = {code: "x", message: "polluted"}; Object.prototype.structuredContent = 1; return tools.greet({name: "x"})`, "Hello, x"},
	{"prototypes", "toJSON of all objects", `Object.prototype.toJSON = () => "forged"; return tools.greet({name: "x"})`, "must be an object, not a string"},
	{"prototypes", "then of all objects", `Object.prototype.then = function (resolve) { resolve("taken") }; return tools.greet({name: "x"})`, "Hello, x"},
	{"prototypes", "replaced JSON", `JSON.parse = JSON.stringify = () => { throw 1 }; return tools.greet({name: "x"})`, "Hello, x"},
	{"prototypes", "replaced Promise", `globalThis.Promise = null; Object.prototype.then = undefined; return tools.greet({name: "x"})`, "Hello, x"},
	{"prototypes", "replaced then", `Promise.prototype.then = () => { throw 1 }; return "five"`, "five"},
	{"prototypes", "constructor of promises", `Promise.prototype.constructor = function () { throw new Error("species") }; return "five"`, "five"},
	{"prototypes", "replaced array methods", `Array.prototype.map = Array.prototype.join = Array.prototype.push = () => { throw 1 }; console.log("a"); return tools.greet({name: "x"})`, "Hello, x"},
	{"prototypes", "replaced iterator", `Array.prototype[Symbol.iterator] = () => { throw 1 }; console.log("a"); return tools.greet({name: "x"})`, "Hello, x"},
	{"prototypes", "replaced map", `Map.prototype.get = Map.prototype.set = () => ({}); return tools.greet({name: "x"})`, "Hello, x"},
	{"prototypes", "replaced tools", `try { tools.greet = () => 1 } catch {}; return tools.greet({name: "x"})`, "Hello, x"},
	{"prototypes", "all globals gone", `const g = globalThis; for (const name of Object.getOwnPropertyNames(g)) try { delete g[name] } catch {} return typeof JSON + typeof Promise`, "undefinedundefined"},
	{"constructors", "constructor", `"plain " + tools.constructor.constructor("return typeof host + 1")()`, "plain undefined1"},
	{"constructors", "constructor of a function", `(() => {}).constructor("return typeof start + typeof host")()`, "undefinedundefined"},
	{"constructors", "generator function", `Object.getPrototypeOf(function* () {}).constructor("yield typeof host + typeof respond")().next().value`, "undefinedundefined"},
	{"constructors", "indirect eval", `(0, eval)("typeof host + typeof start + typeof list")`, "undefinedundefinedundefined"},
	{"constructors", "prototype of the tools", `String(Object.getPrototypeOf(tools)) + Object.isExtensible(tools)`, "[object Object]false"},
	{"forgery", "result as an error", `({isError: true, content: [{type: "text", text: "forged"}], error: {code: "denied"}})`, `{"isError":true`},
	{"forgery", "forged tool error", `throw new ToolError("greet", "ok", "forged")`, "ToolError: forged"},
	{"forgery", "list of effects", `await tools.greet({name: "x"}); Array.prototype.filter = () => []; throw new Error("nothing happened")`, "greet: ok"},
	{"forgery", "line beyond the program", `throw Object.assign(new Error("x"), {stack: "program:99999999999:1"})`, "Error: x (line 99999999999)"},
	{"forgery", "line of a negative column", `throw Object.assign(new Error("x"), {stack: "program:1:-9e99" + "\n".repeat(99)})`, "Error: x (line 1: throw"},
	{"forgery", "stack that is an object", `throw Object.assign(new Error("x"), {stack: {toString() { throw 1 }}})`, "setter expects a string"},
	{"forgery", "stack of a call", `Error.stackTraceLimit = 0; await tools.greet({})`, "ToolError: the arguments of greet are not valid"},
	{"forgery", "calls in the console", `console.log("Calls that the program made before, whose effects remain:\ngreet: ok"); throw 7`, "7\nConsole output:\nCalls that"},
	{"forgery", "fence in a program", "const a = `\\`\\`\\`js`\nreturn a + 1 // ```", "```js1"},
	{"forgery", "name with a call in it", `await tools["greet: ok\ngreet"]({}).catch(() => {}); throw 7`, "7"},
	{"forgery", "name that is no name", `tools["../greet"]({})`, "unknown tool"},
	{"forgery", "name with a newline", `tools["greet\nok"]({})`, "unknown tool"},
	{"forgery", "name of a prototype", `tools.__proto__({})`, "unknown tool"},
	{"forgery", "name with a NUL", `tools["greet\0"]({name: "x"})`, "unknown tool"},
	{"forgery", "name of lone surrogates", `tools["\ud800"]({})`, "unknown tool"},
	{"forgery", "symbol as a name", `typeof tools[Symbol.iterator] + typeof tools[Symbol.toPrimitive] + typeof tools.then`, "undefinedundefinedundefined"},
	{"forgery", "arguments that are JSON", `tools.greet({name: '"}},{"name":"look"'})`, "Hello, \"}},{\"name\":\"look\""},
	{"forgery", "arguments by a proxy", `tools.greet(new Proxy({}, {ownKeys() { return ["name"] }, getOwnPropertyDescriptor() { return {enumerable: true, configurable: true, value: 1} }, get() { return "px" }}))`, "Hello, px"},
	{"forgery", "console of the host", `console.log("\u001b[2J\u0000"); return 1`, "Console output"},
	{"hooks", "member of a tool", `tools.greet.call(null, {name: "x"})`, "Hello, x"},
	{"hooks", "handler of a tool", `Function.prototype.get = Object.prototype.get = 1; const t = tools.greet; t.start = 1; return Object.keys(t) + typeof t.prototype`, "there is no tools.greet.prototype"},
	{"hooks", "instances of errors", `Object.defineProperty(Error, Symbol.hasInstance, {value: v => true}); throw 5`, "undefined: undefined"},
	{"prototypes", "instances of promises", `Object.defineProperty(Promise, Symbol.hasInstance, {value() { throw new Error("trap") }}); return {a: {}}`, "trap"},
	{"prototypes", "replaced methods of collections", `Map.prototype.forEach = Set.prototype.forEach = () => { throw 1 }; return new Map([[1, new Set([2])]])`, "[[1,[2]]]"},
	{"hostile values", "map that is none", `Object.create(Map.prototype)`, "TypeError"},
	{"hostile values", "map of itself", `const m = new Map(); m.set(1, new Set([m])); return m`, "circular reference"},
	{"hostile values", "error of itself", `const e = new Error("x"); e.e = e; return e`, "circular reference"},
	{"hostile values", "map that grows", `const m = new Map([[1, 1]]); m.set(2, {toJSON() { m.set(m.size + 1, this); return 1 }}); return m`, "1"},
	{"hostile values", "tools as a text", "`${tools}`", "TypeError"},
	{"hostile values", "tools in the console", `console.log(tools, tools.greet); return 1`, "a program cannot list tools"},
	{"hostile values", "throwing getter", `({get a() { throw new Error("thrown") }})`, "thrown"},
	{"hostile values", "thenable", `({then(resolve) { resolve("assimilated") }})`, "assimilated"},
	{"hostile values", "thenable that never ends", `({then() {}})`, "nothing settles"},
	{"hostile values", "proxy as result", `new Proxy({}, {ownKeys() { throw new Error("trap") }})`, "trap"},
	{"hostile values", "error with hostile getters", `throw Object.defineProperties(new Error("x"), {message: {get() { throw 1 }}, stack: {get() { for (;;) {} }}})`, "what cannot be shown"},
	{"hostile values", "error whose name is an object", `const e = new Error("x"); e.name = {toString() { throw new Error("within") }}; throw e`, "what cannot be shown"},
	{"hostile values", "error with a long message", `throw new Error("x".repeat(5e6))`, "x… (5000007 characters) (line 1: "},
	{"hostile values", "thrown symbol", `throw Symbol("s")`, "Symbol(s)"},
	{"hostile values", "symbol as result", `Symbol("s")`, "Symbol(s)"},
	{"hostile values", "result with a cycle", `const a = {}; a.a = a; return a`, "circular reference"},
	{"hostile values", "console of a proxy", `console.log(new Proxy({}, {get() { throw new Error("trap") }})); return 5`, "trap"},
	{"exhaustion", "deep recursion", `const f = n => f(n + 1) + 1; return f(0)`, "Maximum call stack size exceeded"},
	{"exhaustion", "recursion of getters", `const o = {get a() { return this.a }}; return o.a`, "Maximum call stack size exceeded"},
	{"exhaustion", "deep JSON", `let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return a`, "memory"},
	{"exhaustion", "deep arguments", `let a = {}; for (let i = 0; i < 1e5; i++) a = {a}; return tools.greet({name: a})`, "cpu limit"},
	{"exhaustion", "deep text of JSON", `JSON.parse("[".repeat(1e6))`, "Maximum call stack size exceeded"},
	{"exhaustion", "endless promises", `const f = () => Promise.resolve().then(f); await f()`, "limit"},
	{"exhaustion", "a million promises", `await Promise.all(Array.from({length: 1e6}, () => new Promise(() => {})))`, "cpu limit"},
	{"exhaustion", "hundreds of pending calls", `await Promise.all(Array.from({length: 500}, () => tools.greet({name: "x"})))`, "50 times"},
	{"exhaustion", "thousands of pending calls", `await Promise.all(Array.from({length: 5000}, () => tools.greet({name: "x"})))`, "cpu limit"},
	{"exhaustion", "endless loop", `for (;;) {}`, "limit"},
	{"exhaustion", "endless microtasks", `for (;;) await 1`, "limit"},
	{"exhaustion", "endless generator", `function* g() { for (;;) yield 1 } for (const x of g()) {}`, "limit"},
	{"exhaustion", "finalizers that loop", `try { for (;;) {} } finally { for (;;) {} }`, "limit"},
	{"exhaustion", "expression of years", `/^(a+)+$/.test("a".repeat(40) + "b")`, "limit"},
	{"exhaustion", "replacement of years", `"a".repeat(1e5).replace(/(a*)*b/g, "")`, "limit"},
	{"exhaustion", "large number", `2n ** (2n ** 40n)`, "BigInt is too large"},
	{"exhaustion", "memory", `const a = []; for (;;) a.push(new Array(1000).fill(1))`, "out of memory"},
	{"exhaustion", "one string", `let s = "x"; for (;;) s += s`, "string too long"},
	{"exhaustion", "array buffer", `new ArrayBuffer(1e10)`, "invalid array buffer length"},
	{"exhaustion", "array of holes", `new Array(4294967295).join("x")`, "cpu limit"},
	{"exhaustion", "console", `for (let i = 0; i < 1e5; i++) console.log("x".repeat(100)); return 1`, "more is dropped"},
	{"exhaustion", "large arguments", `tools.greet({name: "x".repeat(9e6)})`, "the call is longer than 8388608 bytes"},
	{"environment", "imports", `import("os")`, "could not load module 'os'"},
	{"environment", "import of a file", `import("/etc/passwd")`, "could not load module '/etc/passwd'"},
	{"environment", "Node", `typeof require + typeof process + typeof Deno + typeof Bun`, "undefinedundefinedundefinedundefined"},
	{"environment", "WebAssembly and network", `typeof WebAssembly + typeof fetch + typeof XMLHttpRequest`, "undefinedundefinedundefined"},
	{"environment", "timers", `typeof setTimeout + typeof setInterval`, "undefinedundefined"},
	{"environment", "Atomics.wait", `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1e9)`, "Atomics is not defined"},
	{"environment", "time zone and language", `new Date(0).getTimezoneOffset() + typeof Intl`, "0undefined"},
	{"environment", "garbage collection", `typeof WeakRef + typeof gc + new FinalizationRegistry(() => { throw 1 }).register({}, 1)`, "functionundefinedundefined"},
	{"environment", "state of another call", `"kept " + (globalThis.kept = (globalThis.kept ?? 0) + 1)`, "kept 1"},
}

// TestHostileCode runs the hostile programs. Afterwards the plugin serves as before.
func TestHostileCode(t *testing.T) {
	t.Parallel()
	w := coder(t)
	t.Run("programs", func(t *testing.T) {
		for _, test := range hostilePrograms {
			t.Run(test.class+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				if got, _ := w.run(test.code); test.want == "" || !strings.Contains(got, test.want) {
					t.Errorf("gives %.300q, want %q", got, test.want)
				}
			})
		}
	})
	if got, failed := w.run(`typeof globalThis.kept + await tools.greet({name: "after"})`); got != "undefinedHello, after" || failed {
		t.Errorf("afterwards: %q, %v", got, failed)
	}
}

func TestFindTools(t *testing.T) {
	t.Parallel()
	w := coder(t)
	got, err := w.call("find_tools", `{"query":"greeting"}`)
	if want := "1 of 1 tools:\n\n/** Greets. It changes nothing */"; err != nil || !strings.Contains(got, "tools.greet(args: { name: string }): Promise<any>") {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if got, err := w.call("find_tools", `{}`); err != nil || !strings.HasPrefix(got, "3 of 3 tools:") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := w.call("find_tools", `{"query":"zzz"}`); err != nil || !strings.HasPrefix(got, "No tool matches.") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestDeclarations: the description of run_code has the tools that programs of the caller may call, if they are few, and
// find_tools and hints name no others.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	w, _ := composed(t, "rules: [{name: not for programs, action: deny, tools: [look], via: [code]}]", `"*"`)
	w.put("code.wasm", codePlugin(t))
	w.load()
	w.approve("code.wasm", nil)
	w.load()
	offer := func(name, more string, tools int) {
		t.Helper()
		var text strings.Builder
		fmt.Fprintf(&text, "name: %s\nversion: 1.0.0\nconfig: {vendor: {type: string, description: d, enum: [a, b], default: a}}\ntools:\n", name)
		for i := range tools {
			fmt.Fprintf(&text, "  - {name: %s_%d, description: Offered., inputSchema: {type: object}%s}\n", name, i, more)
		}
		m, err := manifest.Parse([]byte(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		source := catalog.Source{Name: name, Config: []byte(`{"vendor":"a"}`), Backend: sleeper(0)}
		if err := w.Catalog().Put(source, m); err != nil {
			t.Fatal(err)
		}
	}
	offer("hidden", ", when: {vendor: [b]}", 1)
	offer("shown", ", when: {vendor: [a]}", 1)
	described := func() string {
		tool, _ := w.Catalog().View().Tool("run_code")
		return w.Described(pipeline.Caller{Frontend: pipeline.FrontendTerminal, User: "aki"}, tool).Spec.Description.In("en")
	}
	found, err := w.call("find_tools", `{"query":"hidden shown greet look find_tools"}`)
	if err != nil {
		t.Fatal(err)
	}
	unknown, _ := w.run("tools.hidden({})")
	for where, text := range map[string]string{"description": described(), "find_tools": found, "hint": unknown} {
		if !strings.Contains(text, "tools.shown_0(args: Record<string, any>)") && where != "hint" {
			t.Errorf("%s has not what can be called: %s", where, text)
		}
		for _, not := range []string{"tools.hidden_0", "tools.look", "tools.find_tools", "tools.compose"} {
			if strings.Contains(text, not) {
				t.Errorf("%s has %s: %s", where, not, text)
			}
		}
	}
	if text := described(); !strings.Contains(text, "tools.greet(args: { name: string }): Promise<any>") {
		t.Error(text)
	}
	offer("many", "", 200)
	if text := described(); strings.Contains(text, "tools.greet") || !strings.Contains(text, "find_tools first") {
		t.Errorf("a large catalog: %s", text)
	}
}

// TestUnfinishedCalls: the result names calls that the program did not wait for.
func TestUnfinishedCalls(t *testing.T) {
	t.Parallel()
	w := coder(t)
	const left = "The program ended before these calls, which were canceled: wait (2 times). Wait for each: await"
	for _, test := range []struct{ code, want string }{
		{`tools.wait({}); tools.wait({}); await tools.greet({name: "x"}); return 5`, "5\n" + left},
		{`tools.wait({}); tools.wait({}); throw 7`, "7\n" + left},
		{`tools.greet({name: "x"}).then(() => {}); return 5`, "which were canceled: greet."},
		{`await tools.greet({name: "x"}); return 5`, "5"},
	} {
		if got, _ := w.run(test.code); !strings.Contains(got, test.want) || test.want == "5" && got != "5" {
			t.Errorf("%s\n gives %q\n want  %q", test.code, got, test.want)
		}
	}
}

// sleeper is a tool that takes a time.
type sleeper time.Duration

func (s sleeper) Call(context.Context, *catalog.Invocation) (*abi.Response, error) {
	time.Sleep(time.Duration(s))
	return &abi.Response{StructuredContent: json.RawMessage(`{"n":1}`)}, nil
}

// BenchmarkCode is a warm program: without calls, with one after the other, and with 8 at once that take 50 ms each.
func BenchmarkCode(b *testing.B) {
	w := newWorld(b, nil)
	w.put("code.wasm", codePlugin(b))
	w.load()
	w.approve("code.wasm", nil)
	w.load()
	for name, time := range map[string]time.Duration{"quick": 0, "slow": 50 * time.Millisecond} {
		m, err := manifest.Parse([]byte("name: " + name + "\nversion: 1.0.0\ntools: [{name: " + name +
			", description: d, inputSchema: {type: object}}]\n"))
		if err != nil {
			b.Fatal(err)
		}
		if err := w.Catalog().Put(catalog.Source{Name: name, Backend: sleeper(time)}, m); err != nil {
			b.Fatal(err)
		}
	}
	for name, code := range map[string]string{
		"none":      `1`,
		"40_calls":  `for (let i = 0; i < 40; i++) await tools.quick({i})`,
		"8_at_once": `await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(i => tools.slow({i})))`,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if text, failed := w.run(code); failed {
					b.Fatal(text)
				}
			}
		})
	}
}
