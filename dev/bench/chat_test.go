package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/host/app/metrics"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
)

const (
	conversations = 100
	turns         = 10
)

// chat measures the time of a turn apart from its model, with many concurrent conversations that start within a second.
// Each turn asks the model twice, with a tool call in between.
func (r *results) chat(t *testing.T) {
	s, err := drivers.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	engine, err := chat.New(t.Context(), talkative(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	var mu sync.Mutex
	var own []time.Duration
	var group sync.WaitGroup
	for i := range conversations {
		group.Go(func() {
			time.Sleep(rand.N(time.Second))
			for range turns {
				model := new(atomic.Int64)
				start := time.Now()
				_, err := engine.Turn(context.WithValue(t.Context(), waited{}, model), &chat.Turn{
					Conversation: fmt.Sprint(i), Caller: pipeline.Caller{Frontend: pipeline.FrontendTerminal,
						User: fmt.Sprint(i)}, Text: "hello",
				})
				took := time.Since(start) - time.Duration(model.Load())
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				own = append(own, took)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	slices.Sort(own)
	r.add(t, "chat_turn_overhead_p50_ms", ms(own[len(own)/2]), "ms")
	r.add(t, "chat_turn_overhead_ms", ms(own[len(own)*99/100]), "ms at p99")
}

// talkative returns the options of an Engine with a tool that does nothing, behind a pipeline with metrics.
func talkative(t *testing.T, s *store.Store) *chat.Options {
	t.Helper()
	m, err := manifest.Parse([]byte(strings.NewReplacer("NAME", "nothing", "TOOL", "nothing").Replace(echoManifest)))
	if err != nil {
		t.Fatal(err)
	}
	c := new(catalog.Catalog)
	if err := c.Put(catalog.Source{Name: "nothing", Backend: nothing{}}, m); err != nil {
		t.Fatal(err)
	}
	observed := metrics.New("bench")
	p := pipeline.New(c, &pipeline.Options{Observer: observed})
	return &chat.Options{
		Provider: slowly{}, Store: s, Call: p.Call, Observe: observed.TurnEnded,
		Tools: func(pipeline.Caller) []*catalog.Tool { return c.View().Tools },
	}
}

// waited is the context key of the time that a turn has waited for its model, in nanoseconds.
type waited struct{}

// slowly is a model that takes a tenth of a second to three seconds.
type slowly struct{}

func (slowly) Name() string { return "slowly" }

func (slowly) Complete(ctx context.Context, r *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
	start := time.Now()
	time.Sleep(100*time.Millisecond + rand.N(200*time.Millisecond))
	ctx.Value(waited{}).(*atomic.Int64).Add(int64(time.Since(start)))
	if len(r.Messages[len(r.Messages)-1].Results) == 0 {
		return &llm.Response{Stop: llm.StopTools,
			Calls: []llm.Call{{ID: "call", Name: "nothing", Arguments: json.RawMessage(`{"text":"hello"}`)}}}, nil
	}
	stream(llm.Delta{Text: "done"})
	return &llm.Response{Text: "done", Stop: llm.StopEnd, Usage: llm.Usage{Input: 100, Output: 10}}, nil
}
