// Command conformance is the plugin that hako plugin conformance tests the Go PDK by.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/pdksql"
)

type args struct {
	A       int64    `json:"a"`
	B       int64    `json:"b"`
	Steps   int64    `json:"steps"`
	Bytes   []int    `json:"bytes"`
	URLs    []string `json:"urls"`
	Text    string   `json:"text"`
	Message string   `json:"message"`
	URI     string   `json:"uri"`
	Method  string   `json:"method"`
	URL     string   `json:"url"`
	Body    string   `json:"body"`
	SQL     string   `json:"sql"`
	Into    string   `json:"into"`
	Keep    bool     `json:"keep"`
}

var (
	calls int
	all   = func() (b []byte) {
		for i := range 256 {
			b = append(b, byte(i))
		}
		return b
	}()
)

func init() {
	tool("echo", func(_ context.Context, in args) (string, error) { return in.Text, nil })
	pdk.HandleTool("add", func(_ context.Context, in args) (map[string]int64, error) {
		return map[string]int64{"sum": in.A + in.B}, nil
	})
	pdk.HandleTool("blocks", func(context.Context, args) (*pdk.Result, error) {
		return pdk.Text("text").AddImage("image/png", all).AddAudio("audio/wav", all).
			AddLink("conformance://text", "text", "text/plain").
			AddResource(pdk.ResourceContents{URI: "conformance://text", MIMEType: "text/plain", Text: "embedded"}), nil
	})
	tool("bytes", func(_ context.Context, in args) (string, error) {
		var b []byte
		for _, n := range in.Bytes {
			b = append(b, byte(n))
		}
		return string(b), nil
	})
	tool("fail", func(_ context.Context, in args) (string, error) { return "", errors.New(in.Message) })
	tool("panic", func(_ context.Context, in args) (string, error) { panic(in.Message) })
	tool("progress", func(ctx context.Context, in args) (string, error) {
		for i := range in.Steps {
			pdk.Progress(ctx, float64(i+1), float64(in.Steps), fmt.Sprintf("step %d", i+1))
		}
		return "done", nil
	})
	tool("log", func(ctx context.Context, in args) (string, error) {
		pdk.Log(ctx).Info(in.Message)
		return "logged", nil
	})
	tool("config", func(ctx context.Context, _ args) (string, error) {
		var config struct{ Greeting string }
		err := pdk.Config(ctx, &config)
		return config.Greeting, err
	})
	tool("locale", func(ctx context.Context, _ args) (string, error) { return pdk.Locale(ctx), nil })
	tool("count", func(context.Context, args) (string, error) {
		calls++
		return fmt.Sprint(calls), nil
	})
	tool("random", func(context.Context, args) (string, error) { return fmt.Sprint(rand.Uint64()), nil })
	tool("update", func(ctx context.Context, in args) (string, error) {
		pdk.ResourceUpdated(ctx, in.URI)
		return "updated", nil
	})
	brokers()
	contents()
}

func tool(name string, handle func(context.Context, args) (string, error)) {
	pdk.HandleTool(name, handle)
}

func brokers() {
	pdk.HandleTool("http", func(ctx context.Context, in args) (map[string]any, error) {
		r, err := pdk.Fetch(ctx, &pdk.HTTPRequest{Method: in.Method, URL: in.URL, Body: []byte(in.Body)})
		if err != nil {
			return nil, coded(err)
		}
		return map[string]any{"status": r.Status, "type": r.Header["Content-Type"], "body": string(r.Body)}, nil
	})
	tool("parallel", func(ctx context.Context, in args) (string, error) {
		var started []*pdk.Pending
		for _, url := range in.URLs {
			pending, err := pdk.Start(ctx, &pdk.HTTPRequest{URL: url})
			if err != nil {
				return "", err
			}
			started = append(started, pending)
		}
		var bodies []string
		for _, pending := range started {
			r, err := pending.Wait()
			if err != nil {
				return "", err
			}
			bodies = append(bodies, string(r.Body))
		}
		return strings.Join(bodies, "|"), nil
	})
	tool("exec", func(ctx context.Context, in args) (string, error) {
		result, err := pdksql.Exec(ctx, in.SQL)
		return fmt.Sprint(result.Changes), coded(err)
	})
	tool("query", func(ctx context.Context, in args) (string, error) {
		rows, err := pdksql.Query(ctx, in.SQL, in.Text)
		if err != nil {
			return "", coded(err)
		}
		return fmt.Sprint(rows.Values[0][0]), nil
	})
	tool("copy", func(ctx context.Context, in args) (string, error) {
		rows, err := pdksql.Query(ctx, in.SQL)
		if err != nil {
			return "", coded(err)
		}
		copied, err := pdksql.Query(ctx, in.Into, rows.Values[len(rows.Values)-1]...)
		if err != nil {
			return "", coded(err)
		}
		return fmt.Sprint(copied.Values[0][0]), nil
	})
	tool("transaction", func(ctx context.Context, in args) (string, error) {
		var result pdksql.Result
		err := pdksql.Transaction(ctx, func(ctx context.Context) (err error) {
			if result, err = pdksql.Exec(ctx, in.SQL); err == nil && !in.Keep {
				err = errUndone
			}
			return err
		})
		if err != nil && !errors.Is(err, errUndone) {
			return "", coded(err)
		}
		return fmt.Sprint(result.Changes), nil
	})
}

var errUndone = errors.New("undone")

// coded puts the code of an error of the host before its text.
func coded(err error) error {
	var failed *abi.Error
	if errors.As(err, &failed) {
		return fmt.Errorf("%s: %w", failed.Code, err)
	}
	return err
}

func contents() {
	pdk.HandleResource("conformance://text", func(_ context.Context, uri string) ([]pdk.ResourceContents, error) {
		return []pdk.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: "a text"}}, nil
	})
	pdk.HandleResource("conformance://bytes", func(_ context.Context, uri string) ([]pdk.ResourceContents, error) {
		return []pdk.ResourceContents{{URI: uri, MIMEType: "application/octet-stream", Data: all}}, nil
	})
	pdk.HandleResourceTemplate("conformance://item/{id}",
		func(_ context.Context, uri string, variables map[string]string) ([]pdk.ResourceContents, error) {
			return []pdk.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: "item " + variables["id"]}}, nil
		})
	pdk.HandlePrompt("greet", func(_ context.Context, in map[string]string) (*pdk.Prompt, error) {
		return &pdk.Prompt{Messages: []pdk.PromptMessage{{Role: "user",
			Content: pdk.Content{Type: "text", Text: "Greet " + in["name"] + "."}}}}, nil
	})
	pdk.CompletePrompt("greet", "name", func(_ context.Context, value string, _ map[string]string) ([]string, error) {
		return []string{value + "1", value + "2"}, nil
	})
}

func main() {}
