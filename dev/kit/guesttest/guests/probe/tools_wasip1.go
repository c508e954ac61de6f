package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	oldrand "math/rand"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"unsafe"

	"github.com/hako-run/hako/pdk"
)

//go:wasmimport hako:core/1 respond
func rawRespond(p, length uint32)

//go:wasmimport hako:core/1 blob
func rawBlob(p, length uint32) int32

//go:wasmimport hako:core/1 take
func rawTake(p uint32)

type echo struct {
	Text string `json:"text"`
}

type fileArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

type number struct {
	N int `json:"n"`
}

type none struct{}

var counter int

var birth = time.Now()

// born is a random number drawn during the start.
var born = rand.Uint64()

var sink any

// texts is returned again by later calls.
var texts = new(pdk.Result)

func init() {
	pdk.HandleTool("echo", func(_ context.Context, in echo) (string, error) { return in.Text, nil })
	pdk.HandleTool("structured", func(_ context.Context, in echo) (echo, error) { return in, nil })
	pdk.HandleTool("fail", func(_ context.Context, in echo) (string, error) {
		return "",
			fmt.Errorf("no: %s", in.Text)
	})
	pdk.HandleTool("count", func(context.Context, none) (string, error) {
		counter++
		return fmt.Sprint(counter), nil
	})
	pdk.HandleTool("born", func(context.Context, none) (string, error) { return fmt.Sprint(born), nil })
	pdk.HandleTool("elapsed", func(context.Context, none) (string, error) {
		return fmt.Sprint(time.Since(birth) > 0),
			nil
	})
	pdk.HandleTool("image", func(context.Context, none) (*pdk.Result, error) {
		return new(pdk.Result).AddImage("image/png", []byte("\x89PNG\r\n\x1a\n")).AddTextBytes([]byte("caption")).
			AddLink("file:///x", "x", "text/plain").AddResource(pdk.ResourceContents{URI: "probe://r",
			Data: []byte{0, 1}}), nil
	})
	pdk.HandleTool("texts", func(_ context.Context, in number) (*pdk.Result, error) {
		for len(texts.Content) < in.N {
			texts.AddText(strings.Repeat(fmt.Sprint(len(texts.Content), " "), 1000))
		}
		if texts.Content[0].Text == "" {
			return nil, errors.New("a call before has changed the result")
		}
		return texts, nil
	})
	pdk.HandleTool("not_utf8", func(_ context.Context, in number) (string, error) {
		return strings.Repeat("\xff", in.N), nil
	})
	pdk.HandleTool("config", func(ctx context.Context, _ none) (*pdk.Result, error) {
		var config json.RawMessage
		err := pdk.Config(ctx, &config)
		return pdk.Text(string(config) + " " + pdk.Locale(ctx)), err
	})
	pdk.HandleTool("log", func(ctx context.Context, in echo) (string, error) {
		pdk.Log(ctx).Info(in.Text, "key", "value")
		fmt.Println("to stdout")
		return "", nil
	})
	pdk.HandleTool("log_flood", func(ctx context.Context, in number) (string, error) {
		for range in.N {
			pdk.Log(ctx).Info(strings.Repeat("x", 1000))
			fmt.Println(strings.Repeat("y", 1000))
		}
		return "done", nil
	})
	pdk.HandleTool("progress", func(ctx context.Context, in number) (string, error) {
		for i := range in.N {
			pdk.Progress(ctx, float64(i+1), float64(in.N), fmt.Sprint("step ", i+1))
		}
		return "done", nil
	})
	pdk.HandleTool("update", func(ctx context.Context, in echo) (string, error) {
		for uri := range strings.FieldsSeq(in.Text) {
			pdk.ResourceUpdated(ctx, uri)
		}
		return "updated", nil
	})
	pdk.HandleTool("update_and_trap", func(ctx context.Context, in echo) (string, error) {
		pdk.ResourceUpdated(ctx, in.Text)
		rawTake(0xffff_fff0)
		rawBlob(0xffff_fff0, 100)
		return "", nil
	})
	pdk.HandleTool("update_flood", func(ctx context.Context, in number) (string, error) {
		for i := range in.N {
			pdk.ResourceUpdated(ctx, fmt.Sprint("probe://item/", i))
		}
		return "done", nil
	})
	pdk.HandleTool("clock", func(context.Context, none) (string, error) {
		return time.Now().UTC().Format(time.RFC3339),
			nil
	})
	pdk.HandleTool("random", func(context.Context, none) (string, error) {
		data := make([]byte, 16)
		file, err := os.Open("/dev/urandom")
		if err == nil {
			file.Close()
			return "", fmt.Errorf("there is a /dev")
		}
		randomGet(unsafe.Pointer(&data[0]), 16)
		return fmt.Sprintf("%x", data), nil
	})
	pdk.HandleTool("math_random", func(context.Context, none) (string, error) {
		return fmt.Sprintf("%x %x %x", rand.Uint64(), rand.Uint64(), oldrand.Uint64()), nil
	})
	pdk.HandleTool("environment", func(context.Context, none) (string, error) {
		return fmt.Sprint(os.Environ(), os.Args), nil
	})
	pdk.HandleTool("fetch", func(ctx context.Context, in echo) (string, error) {
		answer, err := pdk.Fetch(ctx, &pdk.HTTPRequest{URL: in.Text})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d %s", answer.Status, answer.Body), nil
	})
	files()
	hostile()
	offers()
}

//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(p unsafe.Pointer, length uint32) uint32

func files() {
	pdk.HandleTool("read", func(_ context.Context, in fileArgs) (string, error) {
		data, err := os.ReadFile(in.Path)
		return string(data), err
	})
	pdk.HandleTool("write", func(_ context.Context, in fileArgs) (string, error) {
		return "written", os.WriteFile(in.Path, []byte(in.Content), 0o755)
	})
	pdk.HandleTool("list", func(_ context.Context, in fileArgs) (string, error) {
		entries, err := filepath.Glob(in.Path)
		return strings.Join(entries, "\n"), err
	})
}

//go:wasmimport wasi_snapshot_preview1 fd_close
func fdClose(fd int32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_readdir
func fdReaddir(fd int32, buffer unsafe.Pointer, length uint32, cookie uint64, used unsafe.Pointer) uint32

//go:wasmimport wasi_snapshot_preview1 fd_fdstat_set_flags
func fdSetFlags(fd int32, flags uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_renumber
func fdRenumber(from, to int32) uint32

// traces are places in which a call could leave data for the next one.
var (
	tracedMap   = map[string]string{}
	tracedSlice []string
)

// leave leaves a trace in every place that a guest can reach.
func leave(_ context.Context, in echo) (string, error) {
	tracedMap["trace"], tracedSlice = in.Text, append(tracedSlice, in.Text)
	counter++
	os.Setenv("TRACE", in.Text)
	grown := make([]byte, 24<<20)
	copy(grown[len(grown)-100:], in.Text)
	sink = grown
	file, err := os.Create("/workspace/trace.txt") // stays open
	if err != nil {
		return "", err
	}
	file.WriteString(in.Text)
	sink = []any{grown, file}
	go func() {
		for {
			time.Sleep(time.Hour)
		}
	}()
	return "left", nil
}

// search searches for the traces of leave and returns the places in which it found one.
func search(_ context.Context, in echo) (string, error) {
	var found []string
	note := func(place string, there bool) {
		if there {
			found = append(found, place)
		}
	}
	note("map", len(tracedMap) > 0)
	note("slice", len(tracedSlice) > 0)
	note("global", counter > 0)
	note("environment", os.Getenv("TRACE") != "")
	file, err := os.Create("/workspace/mine.txt")
	if err != nil {
		return "", err
	}
	note("descriptor", file.Fd() != 5)
	file.Close()
	// The text is decoded here, so that the search does not find its own argument.
	want := []byte(in.Text)
	for i := range want {
		want[i] ^= 1
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	note("grown memory", stats.Sys > 20<<20)
	memory := unsafe.Slice((*byte)(unsafe.Add(nil, 8)), stats.Sys-8)
	for at := 0; ; at++ {
		next := bytes.Index(memory[at:], want)
		if next < 0 {
			return strings.Join(found, ", "), nil
		}
		at += next
		note(fmt.Sprintf("memory at %#x", at), &memory[at] != &want[0])
	}
}

func hostile() {
	pdk.HandleTool("leave", leave)
	pdk.HandleTool("search", search)
	pdk.HandleTool("leave_and_search", func(ctx context.Context, in echo) (string, error) {
		if _, err := leave(ctx, in); err != nil {
			return "", err
		}
		hidden := []byte(in.Text)
		for i := range hidden {
			hidden[i] ^= 1
		}
		return search(ctx, echo{string(hidden)})
	})
	pdk.HandleTool("close_descriptors", func(context.Context, none) (string, error) {
		return fmt.Sprint(fdClose(3), fdClose(0), fdSetFlags(1, 1), fdRenumber(1, 2)), nil
	})
	pdk.HandleTool("read_directory", func(context.Context, none) (string, error) {
		buffer, used := make([]byte, 64), uint32(0)
		errno := fdReaddir(3, unsafe.Pointer(&buffer[0]), 64, 0, unsafe.Pointer(&used))
		return fmt.Sprint(errno, used), nil
	})
	pdk.HandleTool("loop", func(context.Context, none) (string, error) {
		for n := 0; ; n++ {
			sink = n
		}
	})
	pdk.HandleTool("clear_flood", func(context.Context, none) (string, error) {
		block := make([]byte, 16<<20)
		for {
			clear(block)
		}
	})
	pdk.HandleTool("random_flood", func(context.Context, none) (string, error) {
		block := make([]byte, 16<<20)
		for {
			randomGet(unsafe.Pointer(&block[0]), uint32(len(block)))
		}
	})
	pdk.HandleTool("clock_flood", func(context.Context, none) (string, error) {
		for {
			sink = time.Now()
		}
	})
	pdk.HandleTool("recurse", func(_ context.Context, in number) (string, error) { return fmt.Sprint(fib(in.N)), nil })
	pdk.HandleTool("recurse_forever", func(context.Context, none) (string, error) { return fmt.Sprint(deep(0)), nil })
	pdk.HandleTool("sleep", func(_ context.Context, in number) (string, error) {
		time.Sleep(time.Duration(in.N) * time.Millisecond)
		return "slept", nil
	})
	pdk.HandleTool("poll", func(ctx context.Context, _ none) (string, error) {
		for ctx.Err() == nil {
		}
		return "", ctx.Err()
	})
	pdk.HandleTool("eat_memory", func(_ context.Context, in number) (string, error) {
		var hoard [][]byte
		for range in.N {
			block := make([]byte, 1<<20)
			block[0] = 1
			hoard = append(hoard, block)
		}
		return fmt.Sprint(len(hoard)), nil
	})
	pdk.HandleTool("waste_memory", wasteMemory)
	pdk.HandleTool("panic", func(context.Context, none) (string, error) { panic("on purpose") })
	pdk.HandleTool("exit", func(_ context.Context, in number) (string, error) {
		os.Exit(in.N)
		return "", nil
	})
	pdk.HandleTool("trap", func(context.Context, none) (string, error) {
		rawTake(0xffff_fff0)
		rawBlob(0xffff_fff0, 100)
		return "", nil
	})
	pdk.HandleTool("garbage", func(_ context.Context, in echo) (string, error) {
		rawRespond(uint32(uintptr(unsafe.Pointer(unsafe.StringData(in.Text)))), uint32(len(in.Text)))
		os.Exit(0)
		return "", nil
	})
	pdk.HandleTool("lie", func(_ context.Context, in number) (string, error) {
		rawRespond(16, uint32(in.N))
		return "", nil
	})
	pdk.HandleTool("big", func(_ context.Context, in number) (string, error) { return strings.Repeat("x", in.N), nil })
	pdk.HandleTool("host_flood", func(context.Context, none) (string, error) {
		for {
			rawTake(0)
		}
	})
	pdk.HandleTool("blob_flood", func(context.Context, none) (string, error) {
		for {
			rawBlob(0, 1)
		}
	})
}

type waste struct {
	// Live and Garbage are MiB; Percent is the author's setting, 0 for none.
	Live    int `json:"live"`
	Garbage int `json:"garbage"`
	Percent int `json:"percent"`
}

// wasteMemory allocates memory without ever waiting, and returns the number of garbage collections meanwhile.
func wasteMemory(_ context.Context, in waste) (string, error) {
	if in.Percent != 0 {
		debug.SetGCPercent(in.Percent)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var live [][]*byte
	for range in.Live << 10 {
		live = append(live, make([]*byte, 1<<10/unsafe.Sizeof(uintptr(0))))
	}
	for n := 0; n < in.Garbage<<20; {
		block := make([]byte, n%100_000+1)
		sink, n = block, n+len(block)
	}
	runtime.KeepAlive(live)
	runtime.ReadMemStats(&after)
	return fmt.Sprint(after.NumGC - before.NumGC), nil
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

//go:noinline
func deep(n int) int {
	if n < 0 {
		return n
	}
	return deep(n+1) + 1
}

func offers() {
	pdk.HandleResource("probe://fixed", func(_ context.Context, uri string) ([]pdk.ResourceContents, error) {
		return []pdk.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: "fixed"}}, nil
	})
	pdk.HandleResourceTemplate("probe://item/{id}",
		func(_ context.Context, uri string, variables map[string]string) ([]pdk.ResourceContents, error) {
			return []pdk.ResourceContents{{URI: uri, MIMEType: "application/octet-stream",
				Data: []byte(variables["id"])}}, nil
		})
	pdk.HandlePrompt("ask", func(_ context.Context, arguments map[string]string) (*pdk.Prompt, error) {
		return &pdk.Prompt{Description: "asks",
			Messages: []pdk.PromptMessage{{Role: "user",
				Content: pdk.Content{Type: "text", Text: "about " + arguments["topic"]}}}}, nil
	})
	pdk.CompletePrompt("ask", "topic", func(_ context.Context, value string, _ map[string]string) ([]string, error) {
		var hits []string
		for _, topic := range []string{"weather", "wind", "work"} {
			if strings.HasPrefix(topic, value) {
				hits = append(hits, topic)
			}
		}
		return hits, nil
	})
}
