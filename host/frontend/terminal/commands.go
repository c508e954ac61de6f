package terminal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/lang"
	"github.com/hako-run/hako/internal/strictyaml"
)

// chatWords are the texts of the terminal in one language.
type chatWords struct {
	greeting, keys, again, stopped, goOn                            string
	noTools, model, models, begun, deleted, nothing, unknown, usage string
	resumed, thinking, writing, next, left                          string
	allow, answer, always, alwaysOperation                          string
}

var chatEnglish = chatWords{
	greeting: "hako with %s, tools: %d. /help lists what else there is; Ctrl-C stops an answer, twice it ends.\n",
	keys: `
Enter sends, Alt-Enter or Ctrl-J begins a new line, ↑ and ↓ recall earlier messages, Tab completes commands.
Ctrl-C stops an answer, twice it ends; Ctrl-D ends.
`,
	again:   "Press Ctrl-C again to end.",
	stopped: "Stopped.",
	goOn:    "Go on with: hako chat --conversation ",
	noTools: "There are no tools: it is a plain chat.\n", model: "%s is asked first.\n",
	models: "Asked in this order: %s\n", begun: "A new conversation: %s\n",
	deleted: "Deleted: %s\n", nothing: "There is nothing yet.\n", unknown: "There is no conversation %s of yours.\n",
	usage:   "this conversation: %d tokens%s\ntoday: %d tokens%s\n",
	resumed: "Going on with %s: %s\n", thinking: "Thinking", writing: "Answering", next: "next: ", left: "(%s left)",
	allow: "y allows it, n refuses it, a allows it and shows the rule that always would.", answer: "Your answer:",
	always:          "Allowed this time. To allow it always, put this above the rule %q in the policy file:",
	alwaysOperation: "Allowed this time. Rules for operations within a call are described in docs/policy.md.",
}

var chatJapanese = chatWords{
	greeting: "hako（モデル %s、ツール %d 個）。/help でコマンド一覧。Ctrl-C で回答を停止、2回で終了します。\n",
	keys: `
Enter で送信、Alt-Enter または Ctrl-J で改行、↑ ↓ で入力履歴、Tab でコマンドを補完します。
Ctrl-C で回答を停止（2回で終了）、Ctrl-D で終了します。
`,
	again:   "もう一度 Ctrl-C を押すと終了します。",
	stopped: "停止しました。",
	goOn:    "続きから始めるには: hako chat --conversation ",
	noTools: "ツールはありません（通常のチャットです）。\n", model: "最初に %s を使います。\n", models: "使う順番: %s\n", begun: "新しい会話: %s\n",
	deleted: "削除しました: %s\n", nothing: "まだ何もありません。\n", unknown: "あなたの会話 %s はありません。\n",
	usage:   "この会話: %d トークン%s\n本日: %d トークン%s\n",
	resumed: "%s を再開します: %s\n", thinking: "考え中", writing: "回答中", next: "次: ", left: "（残り %s）",
	allow: "y で許可、n で拒否。a は許可し、常に許可するルールも表示します。", answer: "回答:",
	always:          "今回は許可しました。常に許可するには、ポリシーファイルのルール %q の上に次のルールを追加してください:",
	alwaysOperation: "今回は許可しました。呼び出しの中の操作に対するルールは docs/policy.md を参照してください。",
}

func (s *Chat) words() *chatWords {
	if lang.Japanese(s.Locale) {
		return &chatJapanese
	}
	return &chatEnglish
}

func (s *Chat) greet() {
	s.say(s.words().greeting, s.Model.Name(), len(s.Tools(s.Caller)))
}

// chatCommand is a line that begins with a slash.
type chatCommand struct {
	name, argument string
	about          manifest.Text
	// do gets the rest of the line.
	do func(*Chat, context.Context, string) error
	// arguments returns what the rest of the line may be; nil if it is not completed.
	arguments func(*Chat) []completion
}

// completion is a line that may be meant.
type completion struct{ line, about string }

// chatCommands returns the commands, in the order of the help.
func chatCommands() []chatCommand {
	text := func(en, ja string) manifest.Text { return manifest.Text{"en": en, "ja": ja} }
	return []chatCommand{
		{"/tools", "", text("the tools that the model has", "モデルが使えるツール"), (*Chat).tools, nil},
		{"/model", "[NAME]", text("the models, or ask another one first", "モデルの一覧、または最初に使うモデルの変更"),
			(*Chat).chooseModel, (*Chat).modelNames},
		{"/new", "", text("begin a new conversation", "新しい会話を始める"), (*Chat).begin, nil},
		{"/sessions", "", text("your conversations", "自分の会話の一覧"), (*Chat).sessions, nil},
		{"/resume", "[ID]", text("go on with a conversation; without an ID the last one",
			"会話を再開する（ID を省くと直前の会話）"), (*Chat).resume, (*Chat).conversationIDs},
		{"/history", "[ID]", text("what was said in a conversation; without an ID this one",
			"会話の内容（ID を省くと現在の会話）"), (*Chat).show, (*Chat).conversationIDs},
		{"/delete", "[ID]", text("delete a conversation; without an ID this one",
			"会話を削除する（ID を省くと現在の会話）"), (*Chat).delete, (*Chat).conversationIDs},
		{"/usage", "", text("what was used in this conversation and today", "この会話と本日の使用量"), (*Chat).usage, nil},
		{"/help", "", text("this list", "この一覧"), (*Chat).help, nil},
		{"/quit", "", text("end", "終了する"), func(*Chat, context.Context, string) error { return errQuit }, nil},
	}
}

// command executes a line that begins with a slash. Errors are printed and do not end the chat.
func (s *Chat) command(ctx context.Context, line string) error {
	name, rest, _ := strings.Cut(line, " ")
	commands := chatCommands()
	i := slices.IndexFunc(commands, func(c chatCommand) bool { return c.name == name })
	if i < 0 {
		var known []string
		for _, c := range commands {
			known = append(known, c.name)
		}
		s.say("%s\n", strictyaml.Unknown("command", name, known))
		return nil
	}
	err := commands[i].do(s, ctx, strings.TrimSpace(rest))
	if err != nil && !errors.Is(err, errQuit) {
		s.say("%v\n", err)
		return nil
	}
	return err
}

// complete returns the lines that may be meant with the beginning of one.
func (s *Chat) complete(line string) (list []completion) {
	name, rest, hasArgument := strings.Cut(line, " ")
	for _, c := range chatCommands() {
		switch {
		case !hasArgument && strings.HasPrefix(c.name, name):
			list = append(list, completion{c.name, c.about.In(s.Locale)})
		case hasArgument && c.name == name && c.arguments != nil:
			for _, argument := range c.arguments(s) {
				if strings.HasPrefix(argument.line, rest) {
					list = append(list, completion{name + " " + argument.line, argument.about})
				}
			}
		}
	}
	return list
}

// printTable prints the text of a table in one write, so that no other line gets into it.
func (s *Chat) printTable(table *tabwriter.Writer, text *strings.Builder) error {
	err := table.Flush()
	s.say("%s", Block(text.String()))
	return err
}

func (s *Chat) modelNames() (list []completion) {
	for _, name := range s.Model.now().Models() {
		list = append(list, completion{name, ""})
	}
	return list
}

func (s *Chat) conversationIDs() (list []completion) {
	conversations, err := s.Engine.Conversations(context.Background(), s.Caller)
	if err != nil {
		return nil // the command itself reports it
	}
	for _, c := range conversations {
		list = append(list, completion{c.ID, c.Title})
	}
	return list
}

func (s *Chat) help(context.Context, string) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, c := range chatCommands() {
		Printf(table, "%s\t%s\n", strings.TrimSpace(c.name+" "+c.argument), c.about.In(s.Locale))
	}
	err := s.printTable(table, &text)
	if s.editor != nil {
		s.say("%s", Block(s.words().keys))
	}
	return err
}

func (s *Chat) tools(context.Context, string) error {
	list := s.Tools(s.Caller)
	if len(list) == 0 {
		s.say("%s", Block(s.words().noTools))
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, tool := range list {
		Printf(table, "%s\t%s\n", tool.Name, Summary(tool.Spec.Description.In(s.Locale)))
	}
	return s.printTable(table, &text)
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
	s.beginConversation()
	s.say(s.words().begun, s.Conversation)
	return nil
}

func (s *Chat) sessions(ctx context.Context, _ string) error {
	list, err := s.Engine.Conversations(ctx, s.Caller)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		s.say("%s", Block(s.words().nothing))
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, c := range list {
		Printf(table, "%s\t%s\t%s\n", c.ID, c.Used.Local().Format("2006-01-02 15:04"), c.Title)
	}
	return s.printTable(table, &text)
}

// lastConversation returns the ID of the conversation used last that is not the current one; empty if there is none.
func (s *Chat) lastConversation(ctx context.Context) (string, error) {
	list, err := s.Engine.Conversations(ctx, s.Caller)
	for _, c := range list {
		if c.ID != s.Conversation {
			return c.ID, nil
		}
	}
	return "", err
}

// resume goes on with a conversation, the one used last if id is empty.
func (s *Chat) resume(ctx context.Context, id string) error {
	if id == "" {
		var err error
		if id, err = s.lastConversation(ctx); err != nil {
			return err
		}
		if id == "" {
			s.say("%s", Block(s.words().nothing))
			return nil
		}
	}
	c, err := s.conversation(ctx, id)
	if c != nil {
		s.Conversation = id
		s.goOn(c)
	}
	return err
}

// goOn shows what was said last in a conversation that is resumed.
func (s *Chat) goOn(c *chat.Conversation) {
	s.say(s.words().resumed, c.ID, c.Title)
	s.replay(c.Messages[max(0, len(c.Messages)-2):])
}

// conversation returns a conversation, or nil if the caller has none with this ID, and then says so.
func (s *Chat) conversation(ctx context.Context, id string) (*chat.Conversation, error) {
	c, err := s.Engine.Conversation(ctx, s.Caller, id)
	if errors.Is(err, chat.ErrUnknown) {
		s.say(s.words().unknown, id)
		return nil, nil
	}
	return c, err
}

// show prints what was said in a conversation.
func (s *Chat) show(ctx context.Context, id string) error {
	if id == "" {
		c, err := s.Engine.Conversation(ctx, s.Caller, s.Conversation)
		if errors.Is(err, chat.ErrUnknown) {
			s.say("%s", Block(s.words().nothing))
			return nil
		}
		if err == nil {
			s.replay(c.Messages)
		}
		return err
	}
	c, err := s.conversation(ctx, id)
	if c != nil {
		s.replay(c.Messages)
	}
	return err
}

// replay prints messages.
func (s *Chat) replay(messages []chat.Message) {
	for _, m := range messages {
		if s.editor != nil {
			s.editor.replay(m)
			continue
		}
		mark := "> "
		if m.Role == llm.RoleAssistant {
			mark = ""
		}
		s.say("%s%s\n\n", mark, Block(m.Text))
	}
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
