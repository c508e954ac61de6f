package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// cards records the calls that a surface is shown, by their IDs.
type cards struct {
	surface
	titles, ended map[string]string
	asked         []string
}

func (c *cards) ToolStarted(id, name, title string) {
	if c.titles[id] != "" {
		title += " in place of " + c.titles[id]
	}
	c.titles[id] = title
}

func (c *cards) ToolEnded(id string, _ pipeline.Outcome, short string) { c.ended[short] = c.titles[id] }

func (c *cards) Prompter(call chat.ToolCall) approval.Prompter {
	c.asked = append(c.asked, c.titles[call.ID])
	return approval.Prompter{}
}

// TestModelRepeatsCallIDs: calls to which a model gives one ID, or none, in one round and in the next, have results,
// cards and questions of their own.
func TestModelRepeatsCallIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"call_0", ""} {
		t.Run(fmt.Sprintf("%q", id), func(t *testing.T) {
			t.Parallel()
			asks := func(arguments ...string) step {
				return func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
					r := &llm.Response{Stop: llm.StopTools}
					for _, text := range arguments {
						call := llm.Call{ID: id, Name: "get_weather", Arguments: json.RawMessage(text)}
						r.Calls = append(r.Calls, call)
					}
					return r, nil
				}
			}
			m := &model{steps: []step{
				asks(`{"location":"東京"}`, `{"location":"大阪"}`, `{"location":"東京"}`),
				asks(`{"location":"那覇"}`), says("ok")}}
			b := setup(t, m, backend{"get_weather": func(_ context.Context, r *abi.Request) (*abi.Response, error) {
				return gives("sun: "+string(r.Arguments[len(`{"location":"`):len(r.Arguments)-2]))(t.Context(), r)
			}}, nil, nil)
			s := &cards{titles: map[string]string{}, ended: map[string]string{}}
			if _, err := b.Turn(t.Context(),
				&chat.Turn{Conversation: "c", Caller: aki, Text: "weather?", Surface: s}); err != nil {
				t.Fatal(err)
			}
			given := results(m.asked(t, 2))
			for i, want := range []string{"sun: 東京", "sun: 大阪", "sun: 東京", "sun: 那覇"} {
				again := strings.HasPrefix(given[i].Text, "(You have made this very call before.")
				if !strings.Contains(given[i].Text, want) || again != (i == 2) {
					t.Errorf("call %d has the result %q", i, given[i].Text)
				}
			}
			if len(s.titles) != 3 || len(s.ended) != 3 || len(given) != 4 {
				t.Errorf("%d results, cards %q, ended %q", len(given), s.titles, s.ended)
			}
			if want := []string{"Weather", "Weather", "Weather"}; !slices.Equal(s.asked, want) {
				t.Errorf("asked for %q", s.asked)
			}
		})
	}
}
