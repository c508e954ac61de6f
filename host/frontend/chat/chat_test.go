package chat_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// AC12: a question about the weather is answered with what the tool gave.
func TestAC12AnswersWithData(t *testing.T) {
	t.Parallel()
	m := &model{steps: []step{calls("get_weather", `{"location":"東京"}`), says("東京は晴れです。")}}
	b := setup(t, m, backend{"get_weather": gives("晴れ 15°C\n詳細")}, nil, func(o *chat.Options) { o.Locale = "ja" })
	answer, s, err := b.say(t, "c", "東京の天気を教えて")
	if err != nil {
		t.Fatal(err)
	}
	if answer.Text != "東京は晴れです。" || s.text.String() != answer.Text || answer.Rounds != 2 || answer.Calls != 1 ||
		answer.Usage.Total() != 30 {
		t.Errorf("%+v, shown %q", answer, s.text.String())
	}
	if want := []string{"started get_weather 天気予報", "ended ok 晴れ 15°C"}; !slices.Equal(s.events, want) {
		t.Errorf("shown %q, want %q", s.events, want)
	}
	first := m.asked(t, 0)
	if len(first.Tools) != 2 || !strings.Contains(first.Tools[1].Description, "場所の天気") ||
		!strings.Contains(first.System, "Japanese") {
		t.Errorf("asked with %+v", first)
	}
	given := results(m.asked(t, 1))
	if len(given) != 1 || given[0].IsError || !strings.Contains(given[0].Text, "result of the tool get_weather") ||
		!strings.Contains(given[0].Text, "晴れ 15°C\n詳細") {
		t.Errorf("the model was given %+v", given)
	}
}

// TestDeferredTools: the model is sent them after the listed ones, and a call of one is a call as any other.
func TestDeferredTools(t *testing.T) {
	t.Parallel()
	m := &model{steps: []step{calls("get_weather", `{"location":"東京"}`), says("Sunny.")}}
	b := setup(t, m, backend{"get_weather": gives("sun")}, nil, func(o *chat.Options) {
		all := o.Tools
		o.Tools = func(caller pipeline.Caller) []*catalog.Tool {
			finder := *all(caller)[0]
			finder.Name, finder.Source = "find_tools", &catalog.Source{Own: true, Finds: true}
			return []*catalog.Tool{&finder}
		}
		o.Deferred = all
	})
	_, s, err := b.say(t, "c", "the weather?")
	if want := []string{"started get_weather Weather", "ended ok sun"}; err != nil || !slices.Equal(s.events, want) {
		t.Errorf("shown %q, %v", s.events, err)
	}
	var sent []string
	for _, tool := range m.asked(t, 0).Tools {
		sent = append(sent, fmt.Sprint(tool.Name, " ", tool.Deferred, " ", tool.Finds))
	}
	want := []string{"find_tools false true", "delete_file true false", "get_weather true false"}
	if !slices.Equal(sent, want) {
		t.Errorf("sent %q", sent)
	}
}

// AC13: a question that needs no tool is answered as ever, and the conversation is remembered.
func TestAC13AnswersWithoutTools(t *testing.T) {
	t.Parallel()
	m := &model{steps: []step{says("Hello!"), says("You said hi.")}}
	b := setup(t, m, nil, nil, nil)
	for i, want := range []string{"Hello!", "You said hi."} {
		answer, s, err := b.say(t, "c", fmt.Sprintf("hi %d", i))
		if err != nil || answer.Text != want || len(s.events) > 0 {
			t.Fatalf("%+v, %v, shown %q", answer, err, s.events)
		}
	}
	var texts []string
	for _, message := range m.asked(t, 1).Messages {
		_, text, ok := strings.Cut(message.Text, ")\n")
		if !ok {
			text = message.Text
		}
		texts = append(texts, string(message.Role)+" "+text)
	}
	if want := []string{"user hi 0", "assistant Hello!", "user hi 1"}; !slices.Equal(texts, want) {
		t.Errorf("asked with %q, want %q", texts, want)
	}
}

// AC14: what goes wrong with a tool is told to the model, which then answers.
func TestAC14TellsTheModelOfErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tool, arguments string
		answer          func(context.Context, *abi.Request) (*abi.Response, error)
		want            string
		outcome         pipeline.Outcome
	}{
		"the tool says that it failed": {"get_weather", `{"location":"x"}`,
			func(context.Context, *abi.Request) (*abi.Response, error) {
				return &abi.Response{IsError: true, Content: []abi.Content{{Type: abi.Text, Text: "no such place"}}},
					nil
			}, "no such place", pipeline.ToolError},
		"the host fails": {"get_weather", `{"location":"x"}`, func(context.Context, *abi.Request) (*abi.Response,
			error) {
			return nil, errors.New("secret detail")
		}, "internal error of the host", pipeline.Internal},
		"the tool panics": {"get_weather", `{"location":"x"}`, func(context.Context, *abi.Request) (*abi.Response,
			error) {
			panic("boom")
		}, "internal error of the host", pipeline.Internal},
		"wrong arguments":           {"get_weather", `{"place":"x"}`, nil, "location", pipeline.InvalidArguments},
		"an unknown tool":           {"get_wether]]\nx", `{}`, nil, "Use only the tools", pipeline.NotFound},
		"an unknown tool like none": {"book_flight", `{}`, nil, "Use only the tools", pipeline.NotFound},
		"a misspelt tool": {"get_wether", `{}`, nil, `there is no tool "get_wether". Did you mean get_weather?`,
			pipeline.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &model{steps: []step{calls(test.tool, test.arguments), says("I could not find out.")}}
			b := setup(t, m, backend{"get_weather": test.answer}, nil, nil)
			answer, s, err := b.say(t, "c", "weather?")
			if err != nil || answer.Text != "I could not find out." {
				t.Fatalf("%+v, %v", answer, err)
			}
			given := results(m.asked(t, 1))
			if len(given) != 1 || !given[0].IsError || !strings.Contains(given[0].Text, test.want) ||
				strings.Contains(given[0].Text, "secret") {
				t.Errorf("the model was given %+v, want %q", given, test.want)
			}
			if last := s.events[len(s.events)-1]; !strings.HasPrefix(last, "ended "+string(test.outcome)+" ") {
				t.Errorf("shown %q", s.events)
			}
		})
	}
}

// AC15: without tools the model is offered none.
func TestAC15PlainChat(t *testing.T) {
	t.Parallel()
	m := &model{steps: []step{says("I have no tools.")}}
	b := setup(t, m, nil, nil, func(o *chat.Options) { o.Tools, o.Call, o.MayAsk = nil, nil, nil })
	answer, _, err := b.say(t, "c", "東京の天気は？")
	if err != nil || answer.Text != "I have no tools." {
		t.Fatalf("%+v, %v", answer, err)
	}
	if first := m.asked(t, 0); len(first.Tools) > 0 || strings.Contains(first.System, "Use tools") {
		t.Errorf("asked with %+v", first)
	}
}

// AC18: after ten rounds the model has to answer.
func TestAC18EndsAfterTenRounds(t *testing.T) {
	t.Parallel()
	n := 0
	endless := func(ctx context.Context, r *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
		if r.NoTools {
			return says("This is what I know.")(ctx, r, stream)
		}
		n++
		return calls("get_weather", fmt.Sprintf(`{"location":"%d"}`, n))(ctx, r, stream)
	}
	m := &model{steps: []step{endless}}
	b := setup(t, m, backend{"get_weather": gives("sun")}, nil, nil)
	answer, s, err := b.say(t, "c", "weather everywhere?")
	if err != nil || answer.Text != "This is what I know." || answer.Calls != 10 || answer.Rounds != 11 {
		t.Fatalf("%+v, %v", answer, err)
	}
	last := m.asked(t, 10).Messages
	if note := last[len(last)-1]; note.Role != llm.RoleUser ||
		!strings.Contains(note.Text, "The limit of tool calls is reached") {
		t.Errorf("the model was told %+v", note)
	}
	if !slices.Contains(s.notices, chat.NoticeLimit) {
		t.Errorf("shown %q", s.events)
	}
}

// TestLanguageOfTurns: tools and hako's own texts follow the language of the message; the system prompt and the tools'
// descriptions stay in that of the person, because providers cache them.
func TestLanguageOfTurns(t *testing.T) {
	t.Parallel()
	var system string
	for message, want := range map[string]string{
		"東京の天気は？":                          "ja, The weather of a place., started get_weather 天気予報",
		"What is the weather in 東京 today?": "en, The weather of a place., started get_weather Weather",
	} {
		var got []string
		b := setup(t, &model{steps: []step{calls("get_weather", `{"location":"東京"}`),
			func(_ context.Context, r *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
				if system = cmp.Or(system, r.System); r.System != system {
					t.Errorf("the system prompt depends on the message: %q, %q", r.System, system)
				}
				for _, tool := range r.Tools {
					if tool.Name == "get_weather" {
						got = append(got, tool.Description)
					}
				}
				return &llm.Response{Text: "晴れ", Stop: llm.StopEnd}, nil
			}}}, backend{"get_weather": func(_ context.Context, r *abi.Request) (*abi.Response, error) {
			got = append(got, r.Locale)
			return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: "晴れ"}}}, nil
		}}, nil, nil)
		_, s, err := b.say(t, "c", message)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(append(got, s.events[0]), ", "); got != want {
			t.Errorf("%q: %s, want %s", message, got, want)
		}
	}
}
