package slackbot

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"github.com/hako-run/hako/internal/visible"
)

// TestHostileHidden: nothing that the bot sends to Slack hides a character, whichever method it uses and wherever in it
// the text is.
func TestHostileHidden(t *testing.T) {
	t.Parallel()
	tricks := map[string]string{
		"reorders (RLO)":       "invoice\u202egpj.exe",
		"reorders (isolates)":  "a\u2067b\u2069\u2066c\u2069",
		"right-to-left marks":  "a\u200f\u061cb",
		"says it in tags":      "a\U000e0049\U000e0067\U000e006eb",
		"says it in selectors": "a\ufe00\ufe01\U000e0100\U000e01efb",
		"zero width":           "ad\u200bm\u200ci\u200dn\u2060\ufeffb",
		"fillers and blanks":   "a\u3164\u115f\u1160\uffa0\u2800b",
		"separators":           "a\u2028b\u2029c",
		"control characters":   "a\x1b[2J\x00\x07\u009b2Jb",
		"escaped in JSON":      `"a\u202eb"`,
		"marks over rows":      "a" + strings.Repeat("\u0300\u0316", 50),
	}
	for name, trick := range tricks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := slack.NewTextBlockObject(slack.PlainTextType, trick, false, false)
			section := slack.NewSectionBlock(plain, []*slack.TextBlockObject{plain},
				slack.NewAccessory(slack.NewButtonBlockElement("x", trick, plain)))
			modal := slack.ModalViewRequest{Type: slack.VTModal, Title: plain, Submit: plain, Close: plain,
				Blocks: slack.Blocks{BlockSet: []slack.Block{section}}, PrivateMetadata: trick}
			for method, send := range map[string]func(*slack.Client, context.Context) error{
				"chat.postMessage": func(api *slack.Client, ctx context.Context) error {
					_, _, err := api.PostMessageContext(ctx, "C1", slack.MsgOptionText(trick, false),
						slack.MsgOptionBlocks(section),
						slack.MsgOptionAttachments(slack.Attachment{Fallback: trick, Text: trick,
							Blocks: slack.Blocks{BlockSet: []slack.Block{section}}}))
					return err
				},
				"chat.update": func(api *slack.Client, ctx context.Context) error {
					_, _, _, err := api.UpdateMessageContext(ctx, "C1", "1.2", slack.MsgOptionText(trick, false),
						slack.MsgOptionBlocks(section))
					return err
				},
				"chat.postEphemeral": func(api *slack.Client, ctx context.Context) error {
					_, err := api.PostEphemeralContext(ctx, "C1", "U1", slack.MsgOptionText(trick, false))
					return err
				},
				"chat.appendStream": func(api *slack.Client, ctx context.Context) error {
					_, _, err := api.AppendStreamContext(ctx, "C1", "1.2",
						slack.MsgOptionChunks(slack.NewMarkdownTextChunk(trick), slack.NewTaskUpdateChunk("1", trick)))
					return err
				},
				"views.open": func(api *slack.Client, ctx context.Context) error {
					_, err := api.OpenViewContext(ctx, "1", modal)
					return err
				},
			} {
				texts := sentTexts(t, method, send)
				shown := 0
				for _, text := range texts {
					if r, found := visible.First(text, "\n\t"); found {
						t.Errorf("%s: %U is sent: %q", method, r, text)
					}
					if text == visible.Mark(trick) {
						shown++
					}
				}
				if shown == 0 {
					t.Errorf("%s: sent %q", method, texts)
				}
			}
		})
	}
}

// sentTexts are the texts, also those within JSON, that a request for the method has sent.
func sentTexts(t *testing.T, method string, send func(*slack.Client, context.Context) error) (texts []string) {
	t.Helper()
	var add func(any)
	add = func(value any) {
		switch v := value.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, e := range v {
				add(e)
			}
		case map[string]any:
			for _, e := range v {
				add(e)
			}
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.HasSuffix(r.URL.Path, "/"+method) {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		var document any
		if json.Unmarshal(body, &document) == nil {
			add(document)
		} else {
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			if r.ParseForm() != nil {
				t.Errorf("no form: %s", body)
			}
			for name, values := range r.Form {
				if name == "text" || json.Unmarshal([]byte(values[0]), &document) != nil {
					document = values[0]
				}
				add(document)
			}
		}
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	defer server.Close()
	c := &client{http: server.Client(), observer: silent{}, refused: func() {}}
	if err := send(slack.New("xoxb-1", slack.OptionHTTPClient(c), slack.OptionAPIURL(server.URL+"/")), t.Context()); err != nil {
		t.Errorf("%s: %v", method, err)
	}
	return texts
}

// TestShownInPieces: what belongs together stays together in a streamed answer, wherever it is cut.
func TestShownInPieces(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"👩\u200d💻 ❤\ufe0f", "می\u200cخواهم", "क्\u200dष", "a\tb\nc"} {
		runes := []rune(text)
		for i := range runes {
			sent := ""
			for _, piece := range []string{string(runes[:i]), string(runes[i:])} {
				for _, got := range sentTexts(t, "chat.appendStream", func(api *slack.Client, ctx context.Context) error {
					_, _, err := api.AppendStreamContext(ctx, "C1", "1.2",
						slack.MsgOptionChunks(slack.NewMarkdownTextChunk(piece)))
					return err
				}) {
					if got != "markdown_text" && got != "C1" && got != "1.2" && !strings.HasPrefix(got, "xoxb") {
						sent += got
					}
				}
			}
			if sent != text {
				t.Errorf("%q cut at %d became %q", text, i, sent)
			}
		}
	}
}
