package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/internal/lang"
)

// formWords are the texts around a server's question, in one language.
type formWords struct {
	answer, visit, optional, options, several, proposed, yesNo, send, empty string
}

var (
	formEnglish = formWords{
		answer:   "Type yes to answer it, no to decline; anything else leaves it:",
		visit:    "hako does not open it. Type yes if you agree to go there, no to decline; anything else leaves it:",
		optional: " (optional: empty leaves it out)", options: "a number:",
		several:  "numbers with commas between them:",
		proposed: " [empty takes %s]", yesNo: " (yes or no)", send: "Type yes to send this to %s:", empty: "(empty)",
	}
	formJapanese = formWords{
		answer:   "回答する場合は yes、断る場合は no と入力してください（それ以外は取り消し）:",
		visit:    "hako がこのアドレスを開くことはありません。開くことに同意する場合は yes、断る場合は no と入力してください（それ以外は取り消し）:",
		optional: "（任意: 空欄で省略）", options: "番号:", several: "番号（カンマ区切り）:",
		proposed: "［空欄で %s］", yesNo: "（はい/いいえ）", send: "この内容を %s に送信する場合は yes と入力してください:", empty: "（空）",
	}
)

// form asks a person at a terminal what an upstream server wants to know.
type form struct {
	out    io.Writer
	locale string
	words  *formWords
	next   func(context.Context) (string, error)
}

// fillForm shows the question on out and reads the answer from next, one field after the other.
func fillForm(ctx context.Context, out io.Writer, q *elicitation.Question, locale string,
	next func(context.Context) (string, error)) (elicitation.Answer, error) {
	f := &form{out, locale, &formEnglish, next}
	if lang.Japanese(locale) {
		f.words = &formJapanese
	}
	answer, err := f.fill(ctx, q)
	if err == nil || ctx.Err() != nil {
		return answer, ctx.Err()
	}
	fmt.Fprintln(out)
	return elicitation.Answer{Action: elicitation.Cancel}, nil // the end of the input is neither yes nor no
}

func (f *form) fill(ctx context.Context, q *elicitation.Question) (none elicitation.Answer, err error) {
	prompt := f.words.answer
	if q.Form == nil {
		prompt = f.words.visit
	}
	line, err := f.line(ctx, fmt.Sprintf("\n%s\n%s", q.Text(f.locale), prompt))
	switch {
	case err != nil:
		return none, err
	case saysNo(strings.TrimSpace(line)):
		return elicitation.Answer{Action: elicitation.Decline}, nil
	case !saysYes(line):
		return elicitation.Answer{Action: elicitation.Cancel}, nil
	case q.Form == nil || len(q.Form.Fields) == 0:
		return elicitation.Answer{Action: elicitation.Accept}, nil
	}
	content := map[string]any{}
	for i := range q.Form.Fields {
		if err := f.field(ctx, &q.Form.Fields[i], content); err != nil {
			return none, err
		}
	}
	for _, field := range q.Form.Fields {
		Printf(f.out, "  %s: %s\n", field.Label(), f.shown(&field, content[field.Name]))
	}
	line, err = f.line(ctx, fmt.Sprintf(f.words.send, q.Server))
	if err != nil || !saysYes(line) {
		return elicitation.Answer{Action: elicitation.Cancel}, err
	}
	return elicitation.Answer{Action: elicitation.Accept, Content: content}, nil
}

// line shows a prompt and returns what is typed.
func (f *form) line(ctx context.Context, prompt string) (string, error) {
	Printf(f.out, "%s ", Block(prompt))
	return f.next(ctx)
}

// field asks for one field until what is typed fits.
func (f *form) field(ctx context.Context, field *elicitation.Field, content map[string]any) error {
	for {
		line, err := f.line(ctx, f.prompt(field))
		if err != nil {
			return err
		}
		if strings.TrimSpace(line) == "" {
			if field.Default != nil {
				content[field.Name] = field.Default
				return nil
			}
			if !field.Required {
				return nil
			}
		}
		value, err := field.Read(line)
		if err == nil {
			content[field.Name] = value
			return nil
		}
		if problem, ok := errors.AsType[*elicitation.Problem](err); ok {
			Printf(f.out, "%s\n", Block(problem.Text(f.locale)))
		}
	}
}

// prompt returns the text that asks for a field.
func (f *form) prompt(field *elicitation.Field) string {
	var b strings.Builder
	b.WriteString("\n" + field.Label())
	switch {
	case field.Default != nil:
		fmt.Fprintf(&b, f.words.proposed, f.shown(field, field.Default))
	case !field.Required:
		b.WriteString(f.words.optional)
	}
	if field.Kind == elicitation.Boolean {
		b.WriteString(f.words.yesNo)
	}
	if field.Description != "" {
		b.WriteString("\n  " + field.Description)
	}
	for i, o := range field.Options {
		fmt.Fprintf(&b, "\n  %d. %s", i+1, o.Title)
	}
	switch field.Kind {
	case elicitation.Choice:
		b.WriteString("\n" + f.words.options)
	case elicitation.Choices:
		b.WriteString("\n" + f.words.several)
	default:
		b.WriteString(":")
	}
	return b.String()
}

// shown returns a value as people read it.
func (f *form) shown(field *elicitation.Field, value any) string {
	title := func(v any) string {
		if i := slices.IndexFunc(field.Options, func(o elicitation.Option) bool { return o.Value == v }); i >= 0 {
			return field.Options[i].Title
		}
		return strings.Join(strings.Fields(fmt.Sprint(v)), " ")
	}
	switch v := value.(type) {
	case nil:
		return f.words.empty
	case []any:
		var titles []string
		for _, item := range v {
			titles = append(titles, title(item))
		}
		return strings.Join(titles, ", ")
	default:
		return title(v)
	}
}
