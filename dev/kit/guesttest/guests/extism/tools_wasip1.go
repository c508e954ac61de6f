package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

type object = map[string]any

// calls counts the calls that this instance has served.
var calls int

// tools are the tools by name.
var tools = map[string]func(arguments) int32{
	"echo":  func(a arguments) int32 { return text(a.Text) },
	"input": func(arguments) int32 { return text(string(input())) },
	"raw":   func(a arguments) int32 { return output([]byte(a.Text)) },
	"part": func(a arguments) int32 {
		answer := `{"content":[{"type":"text","text":"part"}]}`
		outputSet(putString("before"+answer+"after")+6, uint64(len(answer)))
		return 0
	},
	"fail":   func(a arguments) int32 { return fail(a.Text) },
	"mute":   func(arguments) int32 { return -3 },
	"silent": func(arguments) int32 { return 0 },
	"config": func(a arguments) int32 { return text(get(configGet(putString(a.Text)))) },
	"count":  func(arguments) int32 { return count() },
	"fetch":  fetch,
	"fetch_with_key": func(a arguments) int32 {
		a.Headers = map[string]string{"X-Key": get(configGet(putString("api_key")))}
		return fetch(a)
	},
	"read": func(a arguments) int32 {
		data, err := os.ReadFile(a.Text)
		if err != nil {
			return fail(err.Error())
		}
		return text(string(data))
	},
	"world": func(arguments) int32 {
		return text(fmt.Sprintf("%d %d %v", time.Now().Unix(), rand.Int64(), os.Environ()))
	},
	"print": func(a arguments) int32 {
		fmt.Println(a.Text)
		logWarn(putString(a.Text))
		notifyLoggingMessage(putJSON(object{"level": "error", "data": a.Text}))
		notifyLoggingMessage(putJSON(object{"level": "warning", "data": object{"text": a.Text}}))
		return text("printed")
	},
	"notify": func(arguments) int32 {
		notifyToolListChanged()
		notifyResourceUpdated(putString(`{"uri":"x:y"}`))
		notifyProgress(putString(`{"progress":1,"progressToken":"1","total":2,"message":"half"}`))
		return text(get(createElicitation(putString(`{"message":"?"}`))) + get(listRoots()))
	},
	"sample": func(arguments) int32 { return text(get(createMessage(putString(`{}`)))) },
	"big":    func(a arguments) int32 { return text(strings.Repeat("x", a.N)) },
	"sleep":  func(arguments) int32 { time.Sleep(time.Hour); return 0 },
	"loop": func(arguments) int32 {
		for i := 0; ; i++ {
			sink = i
		}
	},
	"recurse": func(a arguments) int32 {
		sink = fibonacci(cmp.Or(a.N, 90))
		return text(strconv.Itoa(sink))
	},
	"memory": func(arguments) int32 {
		for {
			hoard = append(hoard, make([]byte, 1<<20))
		}
	},
	"blocks": func(arguments) int32 {
		for {
			alloc(1 << 20)
		}
	},
	"flood": func(arguments) int32 {
		for {
			free(alloc(8))
		}
	},
	// churn allocates far more memory in total than the limit, but little at once.
	"churn": func(a arguments) int32 {
		for range a.N {
			free(alloc(1 << 20))
		}
		return text("churned")
	},
	// waste makes n MiB of garbage in a loop that never waits, while 12 MiB are alive, and answers how many collections
	// it took.
	"waste": func(a arguments) int32 {
		live := make([][]*byte, 12<<10)
		for i := range live {
			live[i] = make([]*byte, 1<<10/unsafe.Sizeof(uintptr(0)))
		}
		hoard = make([][]byte, 1)
		for n := 0; n < a.N<<20; n += len(hoard[0]) {
			hoard[0] = make([]byte, n%100_000+1)
		}
		runtime.KeepAlive(live)
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return text(strconv.Itoa(int(stats.NumGC)))
	},
	// corrupt writes before a block, where Extism's own kernel keeps the block's size.
	"corrupt": func(arguments) int32 {
		p := alloc(64)
		alloc(64)
		storeU64(p-8, 0xFFFFFFF4|64<<32)
		for range 100 {
			alloc(100_000)
		}
		return text("survived")
	},
	"wild": func(a arguments) int32 { return text(strconv.FormatUint(loadU64(uint64(a.N)), 16)) },
	"trap": func(arguments) int32 { panic("broken") },
	"exit": func(arguments) int32 { os.Exit(3); return 0 },
}

var (
	sink  int
	hoard [][]byte
)

func fibonacci(n int) int {
	if n < 2 {
		return n
	}
	return fibonacci(n-1) + fibonacci(n-2)
}

type arguments struct {
	Text    string            `json:"text"`
	N       int               `json:"n"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

func text(s string) int32 {
	return outputJSON(object{"content": []object{{"type": "text", "text": s}}})
}

// count returns how often this instance was called, according to a global and to a variable of the host.
func count() int32 {
	calls++
	kept, _ := strconv.Atoi(get(varGet(putString("calls"))))
	kept++
	varSet(putString("calls"), putString(strconv.Itoa(kept)))
	return text(fmt.Sprintf("%d %d %s", calls, kept, get(varGet(putString("calls")))))
}

func fetch(a arguments) int32 {
	body := uint64(0)
	if a.Body != "" {
		body = putString(a.Body)
	}
	answer := get(httpRequest(putJSON(object{"url": a.Text, "method": a.Method, "headers": a.Headers}), body))
	var headers map[string]string
	if err := json.Unmarshal([]byte(get(httpHeaders())), &headers); err != nil {
		return fail(err.Error())
	}
	return text(fmt.Sprint(httpStatusCode(), " ", headers["x-test"], " ", answer))
}

func run(name string, a arguments) int32 {
	do, ok := tools[name]
	if !ok {
		return fail("unknown tool " + name)
	}
	return do(a)
}

type request struct {
	Name      string    `json:"name"`
	Arguments arguments `json:"arguments"`
}

//go:wasmexport describe
func describe() int32 { return listTools() }

//go:wasmexport call
func call() int32 {
	var in struct{ Params request }
	if err := json.Unmarshal(input(), &in); err != nil {
		return fail(err.Error())
	}
	return run(in.Params.Name, in.Params.Arguments)
}

// shout is a plain function: it takes and returns text.
//
//go:wasmexport shout
func shout() int32 { return output([]byte(strings.ToUpper(string(input())))) }

// measure is a plain function with JSON as its result.
//
//go:wasmexport measure
func measure() int32 {
	switch text := string(input()); text {
	case "fail":
		return fail("it cannot be counted")
	case "number":
		return output([]byte("7"))
	case "bytes":
		return output([]byte{0xff})
	default:
		return outputJSON(object{"count": len(text), "input": text})
	}
}

// list returns the configuration value of name, or else fallback. "file:PATH" is the content of a file, and "-"
// nothing.
func list(name string, fallback any) int32 {
	configured := get(configGet(putString(name)))
	path, isFile := strings.CutPrefix(configured, "file:")
	switch {
	case configured == "":
		return outputJSON(object{name: fallback})
	case configured == "-":
		return 0
	case isFile:
		data, err := os.ReadFile(path)
		if err != nil {
			return fail(err.Error())
		}
		return output(data)
	}
	return output([]byte(configured))
}

//go:wasmexport list_tools
func listTools() int32 {
	var listed []object
	for name := range tools {
		listed = append(listed, object{"name": name, "description": "Does " + name + ".",
			"inputSchema": object{"properties": object{}}})
	}
	return list("tools", listed)
}

//go:wasmexport call_tool
func callTool() int32 {
	var in struct{ Request request }
	if err := json.Unmarshal(input(), &in); err != nil {
		return fail(err.Error())
	}
	return run(in.Request.Name, in.Request.Arguments)
}

//go:wasmexport list_prompts
func listPrompts() int32 {
	return list("prompts", []object{{"name": "greet", "arguments": []object{{"name": "name", "required": true}}}})
}

//go:wasmexport get_prompt
func getPrompt() int32 {
	return outputJSON(object{"description": "A greeting.", "messages": []object{
		{"role": "user", "content": object{"type": "text", "text": string(input())}},
	}})
}

//go:wasmexport list_resources
func listResources() int32 {
	return list("resources", []object{{"uri": "test://one", "name": "one", "mimeType": "text/plain"}})
}

//go:wasmexport list_resource_templates
func listResourceTemplates() int32 {
	return list("resourceTemplates", []object{{"uriTemplate": "test://{id}", "name": "some"}})
}

//go:wasmexport read_resource
func readResource() int32 {
	return outputJSON(object{"contents": []object{
		{"uri": "test://one", "mimeType": "text/plain", "text": string(input())},
		{"uri": "test://two", "blob": []byte{1, 2, 3}},
	}})
}

//go:wasmexport complete
func complete() int32 {
	return outputJSON(object{"completion": object{"values": []string{string(input())}, "total": 1, "hasMore": true}})
}
