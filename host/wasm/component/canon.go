package component

import (
	"slices"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// Codes of canonical functions that are not built-ins.
const (
	canonLift  = 0x00
	canonLower = 0x01
)

// canon decodes an entry of a section of canonical functions.
func (c *componentDecoder) canon(r *reader) {
	switch code := r.Byte(); code {
	case canonLift:
		c.lift(r)
	case canonLower:
		c.lower(r)
	default:
		c.builtin(r, code)
	}
}

func (c *componentDecoder) lift(r *reader) {
	r.Expect(0, "the sort of a lifted function")
	index := r.Uint32()
	core := at(r, c.coreItems[CoreFunc], index, CoreFunc.String())
	options := c.options(r)
	t := typeAt[*Func](r, c.scope, r.Uint32(), "the type of a function")
	c.steps(r, 1+len(t.Params))
	c.checkLift(r, core.function, t, options)
	c.define(r, &Lift{index, options, t})
	c.funcs = append(c.funcs, t)
}

func (c *componentDecoder) lower(r *reader) {
	r.Expect(0, "the sort of a lowered function")
	index := r.Uint32()
	t := at(r, c.funcs, index, "function")
	options := c.options(r)
	c.steps(r, 1+len(t.Params))
	c.checkLower(r, t, options)
	c.define(r, &Lower{index, options, t})
	c.addCore(coreItem{sort: CoreFunc, function: t.lowered(options.Async)})
}

// Codes of options.
const (
	optionMemory     = 0x03
	optionRealloc    = 0x04
	optionPostReturn = 0x05
	optionAsync      = 0x06
	optionCallback   = 0x07
)

func (c *componentDecoder) options(r *reader) Options {
	o := Options{Memory: -1, Realloc: -1, PostReturn: -1, Callback: -1}
	seen := map[byte]bool{}
	for range r.Count("options", optionCallback+1) {
		code := r.Byte()
		kind := max(code, byte(Latin1OrUTF16)) // the encodings exclude each other
		if seen[kind] {
			r.Fail("option %#x is given twice, or contradicts one before", code)
		}
		seen[kind] = true
		switch code {
		case byte(UTF8), byte(UTF16), byte(Latin1OrUTF16):
			o.Encoding = Encoding(code)
		case optionMemory:
			o.Memory = c.coreOption(r, CoreMemory)
		case optionRealloc:
			o.Realloc = c.coreOption(r, CoreFunc)
		case optionPostReturn:
			o.PostReturn = c.coreOption(r, CoreFunc)
		case optionAsync:
			o.Async = true
		case optionCallback:
			o.Callback = c.coreOption(r, CoreFunc)
		default:
			r.Fail("option %#x does not exist", code)
		}
	}
	return o
}

func (c *componentDecoder) coreOption(r *reader, sort CoreSort) int {
	index := r.Uint32()
	at(r, c.coreItems[sort], index, sort.String())
	return int(index)
}

// checkLift checks the options of a lifted function, and the type of the core function.
func (c *componentDecoder) checkLift(r *reader, core *coreFunc, t *Func, o Options) {
	params := t.hasPointers() || len(flatten(t.Params)) > MaxFlatParams
	result := !o.Async && (t.Result != nil && t.Result.pointers || len(t.flatResult()) > MaxFlatResults)
	c.checkMemory(r, o, params || result, params)
	want := t.lifted(o)
	if *core != *want {
		r.Fail("a lifted core function has the type %s, and its type in the component is for %s", core, want)
	}
	switch {
	case o.Async && (o.PostReturn >= 0 || !t.Async):
		r.Fail("option async is for functions of an async type, without option post-return")
	case o.Callback >= 0 && !o.Async:
		r.Fail("option callback is for functions with option async")
	}
	c.checkOption(r, "callback", o.Callback, coreFunc{"\x7f\x7f\x7f", "\x7f"})
	c.checkOption(r, "post-return", o.PostReturn, coreFunc{want.results, ""})
}

// checkLower checks the options of a lowered function.
func (c *componentDecoder) checkLower(r *reader, t *Func, o Options) {
	limit, results := MaxFlatParams, MaxFlatResults
	if o.Async {
		limit, results = maxFlatAsyncParams, 0
	}
	result := t.Result != nil && t.Result.pointers
	params := t.hasPointers() || len(flatten(t.Params)) > limit
	c.checkMemory(r, o, result || params || len(t.flatResult()) > results, result)
	switch {
	case o.PostReturn >= 0 || o.Callback >= 0:
		r.Fail("options post-return and callback are for lifted functions")
	case o.Async && !t.Async:
		r.Fail("option async is for functions of an async type")
	}
}

func (t *Func) hasPointers() bool {
	return slices.ContainsFunc(t.Params, func(p Field) bool { return p.Type.pointers })
}

// checkMemory checks the options memory and realloc, and that they are there if they are needed.
func (c *componentDecoder) checkMemory(r *reader, o Options, memory, realloc bool) {
	switch {
	case o.Memory < 0 && memory:
		r.Fail("option memory is missing: the function's values do not fit in core parameters and results")
	case o.Realloc < 0 && realloc:
		r.Fail("option realloc is missing: values must be put into the guest's memory")
	case o.Memory < 0 && o.Realloc >= 0:
		r.Fail("option realloc needs option memory")
	case o.Memory >= 0 && c.coreItems[CoreMemory][o.Memory].limits.Flags&(wasmbin.Limits64|wasmbin.LimitsShared) != 0:
		r.Fail("option memory names a memory with addresses of 64 bits, or one that threads share")
	}
	c.checkOption(r, "realloc", o.Realloc, coreFunc{"\x7f\x7f\x7f\x7f", "\x7f"})
}

// checkOption checks the type of the core function that an option names. A negative index is none.
func (c *componentDecoder) checkOption(r *reader, option string, index int, want coreFunc) {
	if index < 0 {
		return
	}
	if have := c.coreItems[CoreFunc][index].function; *have != want {
		r.Fail("the core function of option %s has the type %s: it must be %s", option, have, &want)
	}
}

// Core value types.
const (
	i32 = wasmbin.I32
	i64 = wasmbin.I64
	f32 = wasmbin.F32
	f64 = wasmbin.F64
)

// operand is an operand of a built-in, in the order of the binary format.
type operand byte

const (
	operandResource   operand = iota // a resource type
	operandStream                    // a stream type
	operandFuture                    // a future type
	operandFlag                      // async, cancellable or shared
	operandOptions                   // options
	operandMemory                    // a core memory
	operandTable                     // a core table
	operandCoreType                  // a core function type
	operandContext                   // a core value type and a number
	operandTaskResult                // the result of a function
)

// builtins are the built-ins by their code.
var builtins = map[byte]struct {
	name            string
	operands        []operand
	params, results []byte
}{
	0x02: {"resource.new", []operand{operandResource}, []byte{i32}, []byte{i32}},
	0x03: {"resource.drop", []operand{operandResource}, []byte{i32}, nil},
	0x04: {"resource.rep", []operand{operandResource}, []byte{i32}, []byte{i32}},
	0x05: {"task.cancel", nil, nil, nil},
	0x06: {"subtask.cancel", []operand{operandFlag}, []byte{i32}, []byte{i32}},
	0x09: {"task.return", []operand{operandTaskResult, operandOptions}, nil, nil},
	0x0a: {"context.get", []operand{operandContext}, nil, []byte{i32}},
	0x0b: {"context.set", []operand{operandContext}, []byte{i32}, nil},
	0x0c: {"thread.yield", []operand{operandFlag}, nil, []byte{i32}},
	0x0d: {"subtask.drop", nil, []byte{i32}, nil},
	0x0e: {"stream.new", []operand{operandStream}, nil, []byte{i64}},
	0x0f: {"stream.read", []operand{operandStream, operandOptions}, []byte{i32, i32, i32}, []byte{i32}},
	0x10: {"stream.write", []operand{operandStream, operandOptions}, []byte{i32, i32, i32}, []byte{i32}},
	0x11: {"stream.cancel-read", []operand{operandStream, operandFlag}, []byte{i32}, []byte{i32}},
	0x12: {"stream.cancel-write", []operand{operandStream, operandFlag}, []byte{i32}, []byte{i32}},
	0x13: {"stream.drop-readable", []operand{operandStream}, []byte{i32}, nil},
	0x14: {"stream.drop-writable", []operand{operandStream}, []byte{i32}, nil},
	0x15: {"future.new", []operand{operandFuture}, nil, []byte{i64}},
	0x16: {"future.read", []operand{operandFuture, operandOptions}, []byte{i32, i32}, []byte{i32}},
	0x17: {"future.write", []operand{operandFuture, operandOptions}, []byte{i32, i32}, []byte{i32}},
	0x18: {"future.cancel-read", []operand{operandFuture, operandFlag}, []byte{i32}, []byte{i32}},
	0x19: {"future.cancel-write", []operand{operandFuture, operandFlag}, []byte{i32}, []byte{i32}},
	0x1a: {"future.drop-readable", []operand{operandFuture}, []byte{i32}, nil},
	0x1b: {"future.drop-writable", []operand{operandFuture}, []byte{i32}, nil},
	0x1c: {"error-context.new", []operand{operandOptions}, []byte{i32, i32}, []byte{i32}},
	0x1d: {"error-context.debug-message", []operand{operandOptions}, []byte{i32, i32}, nil},
	0x1e: {"error-context.drop", nil, []byte{i32}, nil},
	0x1f: {"waitable-set.new", nil, nil, []byte{i32}},
	0x20: {"waitable-set.wait", []operand{operandFlag, operandMemory}, []byte{i32, i32}, []byte{i32}},
	0x21: {"waitable-set.poll", []operand{operandFlag, operandMemory}, []byte{i32, i32}, []byte{i32}},
	0x22: {"waitable-set.drop", nil, []byte{i32}, nil},
	0x23: {"waitable.join", nil, []byte{i32, i32}, nil},
	0x24: {"backpressure.inc", nil, nil, nil},
	0x25: {"backpressure.dec", nil, nil, nil},
	0x26: {"thread.index", nil, nil, []byte{i32}},
	0x27: {"thread.new-indirect", []operand{operandCoreType, operandTable}, []byte{i32, i32}, []byte{i32}},
	0x28: {"thread.resume-later", nil, []byte{i32}, nil},
	0x29: {"thread.suspend", []operand{operandFlag}, nil, []byte{i32}},
	0x2a: {"thread.suspend-then-resume", []operand{operandFlag}, []byte{i32}, []byte{i32}},
	0x2b: {"thread.yield-then-resume", []operand{operandFlag}, []byte{i32}, []byte{i32}},
	0x2c: {"thread.suspend-then-promote", []operand{operandFlag}, []byte{i32}, []byte{i32}},
	0x2d: {"thread.yield-then-promote", []operand{operandFlag}, []byte{i32}, []byte{i32}},
	0x40: {"thread.spawn-ref", []operand{operandFlag, operandCoreType}, []byte{i32, i32}, []byte{i32}},
	0x41: {"thread.spawn-indirect", []operand{operandFlag, operandCoreType, operandTable},
		[]byte{i32, i32}, []byte{i32}},
	0x42: {"thread.available-parallelism", []operand{operandFlag}, nil, []byte{i32}},
}

func (c *componentDecoder) builtin(r *reader, code byte) {
	known, ok := builtins[code]
	if !ok {
		r.Pos--
		r.Fail("canonical function %#x does not exist", code)
	}
	b := &Builtin{Op: Op(code), Name: known.name, Params: known.params, Results: known.results}
	for _, operand := range known.operands {
		c.operand(r, b, operand)
	}
	c.define(r, b)
	c.addCore(coreItem{sort: CoreFunc, function: &coreFunc{string(b.Params), string(b.Results)}})
}

func (c *componentDecoder) operand(r *reader, b *Builtin, operand operand) {
	switch operand {
	case operandResource:
		b.Resource = typeAt[*Resource](r, c.scope, r.Uint32(), "a resource type")
		if b.Op != OpResourceDrop && b.Resource.Imported {
			r.Fail("%s is for the component's own resource types, and %q is imported", b.Name, b.Resource.Name)
		}
	case operandStream:
		c.elementType(r, KindStream, "a stream")
	case operandFuture:
		c.elementType(r, KindFuture, "a future")
	case operandFlag:
		r.Flag("the mark of " + b.Name)
	case operandOptions:
		c.options(r)
	case operandMemory:
		c.coreOption(r, CoreMemory)
	case operandTable:
		c.coreOption(r, CoreTable)
	case operandCoreType:
		coreFuncAt(r, c.coreTypes, r.Uint32())
	case operandContext:
		t := r.Byte()
		if t != i32 && t != i64 {
			r.Fail("%s has type %#x: it is i32 or i64", b.Name, t)
		}
		if i := r.Uint32(); i > 1 {
			r.Fail("%s has number %d: there are 0 and 1", b.Name, i)
		}
		if b.Params != nil {
			b.Params = []byte{t}
		} else {
			b.Results = []byte{t}
		}
	case operandTaskResult:
		if t := c.result(r, c.scope); t != nil {
			b.Params = []byte(flattenParams([]Field{{Type: t}}, MaxFlatParams))
		}
	}
}

func (c *componentDecoder) elementType(r *reader, kind Kind, what string) {
	if t := typeAt[*Type](r, c.scope, r.Uint32(), what); t.Kind != kind {
		r.Fail("the type of a built-in is not %s", what)
	}
}
