package terminal

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"text/tabwriter"

	"github.com/hako-run/hako/host/chat"
	"github.com/hako-run/hako/host/llm"
	"github.com/hako-run/hako/internal/strictyaml"
)

// chatWords are the texts of the terminal in one language.
type chatWords struct {
	greeting, help, again, stopped, goOn                            string
	noTools, model, models, begun, deleted, nothing, unknown, usage string
}

var chatEnglish = chatWords{
	greeting: "hako with %s, %d tools. /help lists what else there is; Ctrl-C stops an answer, twice it ends.\n",
	help: `/tools           the tools that the model has
/model [NAME]    the models, or ask another one first
/new             begin a new conversation
/history [ID]    your conversations, or what was said in one
/delete [ID]     delete a conversation; without an ID this one
/usage           what was used in this conversation and today
/quit            end
`,
	again:   "Press Ctrl-C again to end.",
	stopped: "Stopped.",
	goOn:    "Go on with: hako chat --conversation ",
	noTools: "There are no tools: it is a plain chat.\n", model: "%s is asked first.\n",
	models: "Asked in this order: %s\n", begun: "A new conversation: %s\n",
	deleted: "Deleted: %s\n", nothing: "There is nothing yet.\n", unknown: "There is no conversation %s of yours.\n",
	usage: "this conversation: %d tokens%s\ntoday: %d tokens%s\n",
}

var chatJapanese = chatWords{
	greeting: "hako（モデル %s、ツール %d 個）。/help でコマンド一覧。Ctrl-C で回答を停止、2回で終了します。\n",
	help: `/tools           モデルが使えるツール
/model [名前]    モデルの一覧、または最初に使うモデルの変更
/new             新しい会話を始める
/history [ID]    自分の会話の一覧、または会話の内容
/delete [ID]     会話を削除する（ID を省くと現在の会話）
/usage           この会話と本日の使用量
/quit            終了する
`,
	again:   "もう一度 Ctrl-C を押すと終了します。",
	stopped: "停止しました。",
	goOn:    "続きから始めるには: hako chat --conversation ",
	noTools: "ツールはありません（通常のチャットです）。\n", model: "最初に %s を使います。\n", models: "使う順番: %s\n", begun: "新しい会話: %s\n",
	deleted: "削除しました: %s\n", nothing: "まだ何もありません。\n", unknown: "あなたの会話 %s はありません。\n",
	usage: "この会話: %d トークン%s\n本日: %d トークン%s\n",
}

func (s *Chat) words() *chatWords {
	if strings.HasPrefix(s.Locale, "ja") {
		return &chatJapanese
	}
	return &chatEnglish
}

func (s *Chat) greet() {
	s.say(s.words().greeting, s.Model.Name(), len(s.Tools(s.Caller)))
}

// chatCommands are the commands by the first word of a line. Each gets the rest of the line.
var chatCommands = map[string]func(*Chat, context.Context, string) error{
	"/help":    (*Chat).help,
	"/tools":   (*Chat).tools,
	"/model":   (*Chat).chooseModel,
	"/new":     (*Chat).begin,
	"/history": (*Chat).history,
	"/delete":  (*Chat).delete,
	"/usage":   (*Chat).usage,
	"/quit":    func(*Chat, context.Context, string) error { return errQuit },
}

// command executes a line that begins with a slash. Errors are printed and do not end the chat.
func (s *Chat) command(ctx context.Context, line string) error {
	name, rest, _ := strings.Cut(line, " ")
	do, ok := chatCommands[name]
	if !ok {
		var known []string
		for name := range chatCommands {
			known = append(known, name)
		}
		s.say("%s\n", strictyaml.Unknown("command", name, known))
		return nil
	}
	err := do(s, ctx, strings.TrimSpace(rest))
	if err != nil && !errors.Is(err, errQuit) {
		s.say("%v\n", err)
		return nil
	}
	return err
}

func (s *Chat) help(context.Context, string) error {
	s.say("%s", Block(s.words().help))
	return nil
}

func (s *Chat) tools(context.Context, string) error {
	list := s.Tools(s.Caller)
	if len(list) == 0 {
		s.say("%s", Block(s.words().noTools))
	}
	table := tabwriter.NewWriter(s.Err, 0, 0, 2, ' ', 0)
	for _, tool := range list {
		Printf(table, "%s\t%s\n", tool.Name, Summary(tool.Spec.Description.In(s.Locale)))
	}
	return table.Flush()
}

func (s *Chat) chooseModel(_ context.Context, name string) error {
	if name == "" {
		s.say(s.words().models, strings.Join(s.Model.now().Models(), ", "))
		return nil
	}
	if err := s.Model.choose(name); err != nil {
		return err
	}
	s.say(s.words().model, name)
	return nil
}

func (s *Chat) begin(context.Context, string) error {
	s.Conversation = newConversation()
	s.say(s.words().begun, s.Conversation)
	return nil
}

func (s *Chat) history(ctx context.Context, id string) error {
	if id != "" {
		return s.show(ctx, id)
	}
	list, err := s.Engine.Conversations(ctx, s.Caller)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		s.say("%s", Block(s.words().nothing))
	}
	table := tabwriter.NewWriter(s.Err, 0, 0, 2, ' ', 0)
	for _, c := range list {
		Printf(table, "%s\t%s\t%s\n", c.ID, c.Used.Local().Format("2006-01-02 15:04"), c.Title)
	}
	return table.Flush()
}

// show prints what was said in a conversation.
func (s *Chat) show(ctx context.Context, id string) error {
	c, err := s.Engine.Conversation(ctx, s.Caller, id)
	if errors.Is(err, chat.ErrUnknown) {
		s.say(s.words().unknown, id)
		return nil
	}
	if err != nil {
		return err
	}
	for _, m := range c.Messages {
		mark := "> "
		if m.Role == llm.RoleAssistant {
			mark = ""
		}
		s.say("%s%s\n\n", mark, Block(m.Text))
	}
	return nil
}

func (s *Chat) delete(ctx context.Context, id string) error {
	id = cmp.Or(id, s.Conversation)
	err := s.Engine.Delete(ctx, s.Caller, id)
	if errors.Is(err, chat.ErrUnknown) {
		s.say(s.words().unknown, id)
		return nil
	}
	if err != nil {
		return err
	}
	s.say(s.words().deleted, id)
	if id == s.Conversation {
		return s.begin(ctx, "")
	}
	return nil
}

func (s *Chat) usage(ctx context.Context, _ string) error {
	var here chat.Use
	c, err := s.Engine.Conversation(ctx, s.Caller, s.Conversation)
	if err == nil {
		here = c.Use
	} else if !errors.Is(err, chat.ErrUnknown) {
		return err
	}
	today, err := s.Engine.Today(ctx, s.Caller)
	if err != nil {
		return err
	}
	s.say(s.words().usage, here.Tokens, here.Price(s.Currency), today.Tokens, today.Price(s.Currency))
	return nil
}
