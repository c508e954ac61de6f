package slackbot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/lazyregexp"
)

// Bounds of a question in a message, so that its buttons stay in view. The button "exact arguments" shows everything.
const (
	maxValueLines = 10
	maxValue      = 600 // in bytes
	maxFact       = 400 // in bytes
	maxMentions   = 5
	// maxExact bounds the exact arguments, in bytes: a modal takes 250 kB of JSON, which may encode a byte as six.
	maxExact = 40_000
)

// questionBlocks show a waiting question: the call and its arguments, the caller, the reason, the state and buttons.
// approvers are mentioned because the question waits for them.
func questionBlocks(q *approval.Question, d *approval.Description, locale string, approvers []string) []slack.Block {
	words := wordsFor(locale)
	ask := clip.Marked(strings.TrimSpace(d.Ask+"\n"+d.About), maxQuestion)
	blocks := []slack.Block{slack.NewSectionBlock(plain(ask), nil, nil)}
	if values := valuesBlock(d, words); values != nil {
		blocks = append(blocks, values)
	}
	facts := []string{}
	if len(d.Effects) > 0 {
		facts = append(facts, ":warning: "+escape(strings.Join(d.Effects, " ")))
	}
	for _, fact := range d.Facts {
		facts = append(facts, escape(fact.Name+": ")+clipEscaped(fact.Text, maxFact,
			append([]string{q.Caller.User}, q.Approvers.Users...)...))
	}
	state := fmt.Sprintf(words.until, moment(q.Expires))
	if len(approvers) > 0 && !slices.Contains(approvers, q.Caller.User) {
		state = fmt.Sprintf(words.waitsFor, mentions(approvers), moment(q.Expires))
	}
	facts = append(facts, state)
	blocks = append(blocks, slack.NewContextBlock("",
		slack.NewTextBlockObject(slack.MarkdownType, strings.Join(facts, "\n"), false, false)))
	buttons := []slack.BlockElement{
		button(actionApprove, q.ID, words.approve).WithStyle(slack.StylePrimary),
		button(actionDeny, q.ID, words.deny).WithStyle(slack.StyleDanger),
	}
	if len(d.Values) > 0 {
		buttons = append(buttons, button(actionExact, q.ID, words.exact))
	}
	return append(blocks, slack.NewActionBlock("", buttons...))
}

// endedBlocks show a question as one line with its outcome.
func endedBlocks(q *approval.Question, locale, ending string) []slack.Block {
	name := q.Title.In(locale)
	if name == "" {
		name = q.Tool
	}
	return []slack.Block{slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType,
		"*"+clipEscaped(name, maxFact)+"* (`"+clipEscaped(q.Tool, maxFact)+"`)  "+ending, false, false))}
}

// slackID are the IDs that Slack gives people (U, W) and channels (C, G) today.
var slackID = lazyregexp.New(`^[UWCG][A-Z0-9]{8,20}$`)

// maxNames bounds the IDs of a question whose names are shown, because Slack is asked for each that is not cached.
// nameTime bounds the wait of the question for the answers.
const (
	maxNames = 10
	nameTime = 2 * time.Second
)

// describe describes a question for each place. Values that are IDs of people and channels have their names there, as
// far as Slack tells them within nameTime. The ID stays beside the name, because anybody can take another's display
// name.
func (w *workspace) describe(ctx context.Context, q *approval.Question, places []spot) []*approval.Description {
	ctx, cancel := context.WithTimeout(ctx, nameTime)
	defer cancel()
	names := map[string]string{}
	name := func(value *string) {
		id := *value
		if _, known := names[id]; !known && len(names) < maxNames {
			mark, name := "#", ""
			if isUser(id) {
				mark, name = "@", w.lookUp(ctx, id).name
			} else {
				name = w.channelName(ctx, id)
			}
			if names[id] = shownName(name); names[id] != "" {
				names[id] = mark + names[id] + " (" + id + ")"
			}
		}
		*value = cmp.Or(names[id], id)
	}
	var list []*approval.Description
	for _, p := range places {
		d := q.Describe(p.locale)
		eachID(d, name)
		list = append(list, d)
	}
	return list
}

// eachID calls do with each value and each cell that is an ID, and with the items of short lists of IDs.
func eachID(d *approval.Description, do func(id *string)) {
	each := func(text *string) {
		items := strings.Split(*text, ", ")
		if slices.ContainsFunc(items, func(item string) bool { return !slackID().MatchString(item) }) {
			return
		}
		for i := range items {
			do(&items[i])
		}
		*text = strings.Join(items, ", ")
	}
	for i := range d.Values {
		each(&d.Values[i].Text)
		for _, row := range d.Values[i].Rows {
			for j := range row {
				each(&row[j])
			}
		}
	}
}

// valuesBlock shows the arguments. In a rich_text block, text is neither markup nor a mention.
func valuesBlock(d *approval.Description, words *words) slack.Block {
	var elements []slack.RichTextElement
	bold := &slack.RichTextSectionTextStyle{Bold: true}
	section := func(name, text string) { // Slack refuses empty texts
		var parts []slack.RichTextSectionElement
		if name != "" {
			parts = append(parts, slack.NewRichTextSectionTextElement(name, bold))
		}
		if text != "" {
			parts = append(parts, slack.NewRichTextSectionTextElement(text, nil))
		}
		if len(parts) > 0 {
			elements = append(elements, slack.NewRichTextSection(parts...))
		}
	}
	block := func(name, text string) {
		section(name, "")
		elements = append(elements, preformatted(text))
	}
	if d.Detail != "" {
		block(words.operation, folded(d.Detail))
	}
	left := maxQuestion
	for _, value := range d.Values {
		text := folded(strings.Join(value.Lines(), "\n"))
		if left -= len(value.Name) + len(text); left < 0 {
			section("…", "")
			break
		}
		if value.Name != "" && len(value.Rows) == 0 && !strings.Contains(text, "\n") {
			section(value.Name+": ", text)
			continue
		}
		block(value.Name, text)
	}
	if len(elements) == 0 {
		return nil
	}
	return slack.NewRichTextBlock("", elements...)
}

func preformatted(text string) *slack.RichTextPreformatted {
	return &slack.RichTextPreformatted{
		Type:     slack.RTEPreformatted,
		Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(text, nil)},
	}
}

// folded returns the first lines of a text.
func folded(text string) string {
	lines := strings.SplitN(text, "\n", maxValueLines+1)
	if len(lines) > maxValueLines {
		return clip.Marked(strings.Join(lines[:maxValueLines], "\n"), maxValue) + "\n…"
	}
	return clip.Marked(text, maxValue)
}

func mentions(users []string) string {
	list := make([]string, 0, maxMentions)
	for _, user := range users[:min(len(users), maxMentions)] {
		list = append(list, "<@"+user+">")
	}
	if len(users) > maxMentions {
		list = append(list, "…")
	}
	return strings.Join(list, ", ")
}

// showExact opens a modal with the unchanged arguments of a question.
func (w *workspace) showExact(ctx context.Context, by person, at spot, id, trigger string) {
	words := wordsFor(by.locale)
	q, err := w.bot.options.Approvals.Question(ctx, id)
	if err != nil {
		w.whisper(ctx, at, by.id, words.noQuestion)
		return
	}
	var blocks []slack.Block
	text := q.JSON()
	if shown := clip.Bytes(text, maxExact); shown != text {
		cut := fmt.Sprintf(words.exactCut, utf8.RuneCountInString(shown), utf8.RuneCountInString(text))
		blocks = append(blocks,
			slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, cut, false, false), nil, nil))
		text = shown
	}
	for text != "" {
		part := clip.Bytes(text, maxInput)
		text = text[len(part):]
		blocks = append(blocks, slack.NewRichTextBlock("", preformatted(part)))
	}
	_, err = w.account.Load().api.OpenViewContext(ctx, trigger, slack.ModalViewRequest{
		Type: slack.VTModal, Title: plain(short(words.exact, maxModalTitle)), Close: plain(words.close),
		Blocks: slack.Blocks{BlockSet: blocks},
	})
	if err != nil {
		w.logger.Error("opening a modal failed", "err", err)
		w.whisper(ctx, at, by.id, words.pressAgain)
	}
}
