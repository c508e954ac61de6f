package extism

import (
	"context"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/wasm/fuel"
	"github.com/hako-run/hako/pdk/abi"
)

// memoryFunctions are the functions with which a guest reads input, allocates blocks and sets output.
func (a *Adapter) memoryFunctions() []broker.Function {
	// memory returns a function that needs only the kernel.
	memory := func(name string, params []broker.Type, result *broker.Type,
		do func(*kernel, []uint64) uint64) broker.Function {
		return a.function(name, params, result,
			func(_ context.Context, s *session, p []uint64) uint64 { return do(&s.kernel, p) })
	}
	// get returns a function that reads a value, set one that changes something.
	get := func(name string, do func(*kernel) uint64) broker.Function {
		return memory(name, none, &i64, func(k *kernel, _ []uint64) uint64 { return do(k) })
	}
	set := func(name string, params []broker.Type, do func(*kernel, []uint64)) broker.Function {
		return memory(name, params, nil, func(k *kernel, p []uint64) uint64 { do(k, p); return 0 })
	}
	length := func(k *kernel, p []uint64) uint64 { return k.length(p[0]) }
	return []broker.Function{
		a.function("alloc", one, &i64, func(_ context.Context, s *session, p []uint64) uint64 {
			s.call.Charge(fuel.CopySteps(min(p[0], uint64(s.kernel.limit))))
			return s.kernel.alloc(p[0])
		}),
		set("free", one, func(k *kernel, p []uint64) { k.free(p[0]) }),
		memory("length", one, &i64, length),
		memory("length_unsafe", one, &i64, length),
		memory("load_u8", one, &i32, func(k *kernel, p []uint64) uint64 { return k.load("load_u8", p[0], 1) }),
		memory("load_u64", one, &i64, func(k *kernel, p []uint64) uint64 { return k.load("load_u64", p[0], 8) }),
		set("store_u8", []broker.Type{i64, i32}, func(k *kernel, p []uint64) { k.store("store_u8", p[0], p[1], 1) }),
		set("store_u64", two, func(k *kernel, p []uint64) { k.store("store_u64", p[0], p[1], 8) }),
		memory("input_load_u8", one, &i32, func(k *kernel, p []uint64) uint64 {
			return k.load("input_load_u8", k.input.offset+p[0], 1)
		}),
		memory("input_load_u64", one, &i64, func(k *kernel, p []uint64) uint64 {
			return k.load("input_load_u64", k.input.offset+p[0], 8)
		}),
		get("input_offset", func(k *kernel) uint64 { return k.input.offset }),
		get("input_length", func(k *kernel) uint64 { return k.input.length }),
		set("input_set", two, func(k *kernel, p []uint64) { k.input = span{p[0], p[1]} }),
		get("output_offset", func(k *kernel) uint64 { return k.output.offset }),
		get("output_length", func(k *kernel) uint64 { return k.output.length }),
		set("output_set", two, func(k *kernel, p []uint64) { k.output = k.view("output_set", span{p[0], p[1]}) }),
		get("error_get", func(k *kernel) uint64 { return k.failure.offset }),
		set("error_set", one, func(k *kernel, p []uint64) {
			k.failure = k.view("error_set", span{p[0], k.length(p[0])})
		}),
		get("memory_bytes", func(k *kernel) uint64 { return uint64(k.used) }),
		set("reset", none, func(k *kernel, _ []uint64) { k.reset() }),
	}
}

// maxVars bounds the variables of a call together with their names, in bytes.
const maxVars = 1 << 20

// stateFunctions are the functions for the configuration and for variables, which last for one call.
func (a *Adapter) stateFunctions() []broker.Function {
	return []broker.Function{
		a.function("config_get", one, &i64, func(_ context.Context, s *session, p []uint64) uint64 {
			name := s.kernel.bytes("config_get", p[0])
			return s.write([]byte(s.configValue(string(name[:min(len(name), maxName)]))))
		}),
		a.function("var_get", one, &i64, func(_ context.Context, s *session, p []uint64) uint64 {
			return s.write(s.vars[s.copyText("var_get", p[0])])
		}),
		a.function("var_set", two, nil, func(_ context.Context, s *session, p []uint64) uint64 {
			s.setVar(s.copyText("var_set", p[0]), s.kernel.bytes("var_set", p[1]))
			return 0
		}),
	}
}

// copyText returns a copy of the block at offset.
func (s *session) copyText(function string, offset uint64) string {
	data := s.kernel.bytes(function, offset)
	s.call.Charge(fuel.CopySteps(uint64(len(data))))
	return string(data)
}

// maxName exceeds the length of any configuration key, in bytes.
const maxName = 1 << 10

// manifestKey replaces characters that a configuration key of a manifest cannot have.
var manifestKey = strings.NewReplacer("-", "_", ".", "_")

// configValue returns the value of name, or else of the corresponding manifest key: "api_key" for "api-key".
func (s *session) configValue(name string) string {
	if value, ok := s.adapter.config[name]; ok {
		return value
	}
	name = manifestKey.Replace(name)
	if slices.Contains(s.adapter.placeholders, name) {
		return s.call.Placeholder(name)
	}
	return s.adapter.config[name]
}

// setVar sets a variable to a copy of value; nil deletes it.
func (s *session) setVar(name string, value []byte) {
	if old, ok := s.vars[name]; ok {
		s.varBytes -= len(name) + len(old)
		delete(s.vars, name)
	}
	if value == nil {
		return
	}
	if s.varBytes += len(name) + len(value); s.varBytes > maxVars {
		panic(&abi.Error{Code: abi.CodeLimit,
			Message: "plugin " + s.call.Plugin + ": the variables of a call (var_set) hold at most 1 MiB together"})
	}
	s.vars[name] = append([]byte{}, value...)
}

// logLevels are the levels of the functions log_*.
var logLevels = map[string]abi.LogLevel{
	"log_trace": abi.LogDebug, "log_debug": abi.LogDebug, "log_info": abi.LogInfo,
	"log_warn": abi.LogWarn, "log_error": abi.LogError,
}

// levelDebug is Extism's number for the log level debug.
const levelDebug = 1

func (a *Adapter) logFunctions() []broker.Function {
	functions := []broker.Function{
		a.function("get_log_level", none, &i32, func(context.Context, *session, []uint64) uint64 { return levelDebug }),
	}
	for name, level := range logLevels {
		functions = append(functions, a.function(name, one, nil,
			func(_ context.Context, s *session, p []uint64) uint64 {
				s.guest.Log(level, s.copyText(name, p[0]))
				return 0
			}))
	}
	return functions
}
