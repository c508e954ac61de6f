package slackbot

import "github.com/slack-go/slack"

// IDs of actions.
const (
	actionStop     = "hako_stop"
	actionApprove  = "hako_approve"
	actionDeny     = "hako_deny"
	actionExact    = "hako_exact"
	actionFeedback = "hako_feedback"

	// Of a server's question: open the form, open the page, accept, decline.
	actionForm    = "hako_form"
	actionPage    = "hako_page"
	actionFormYes = "hako_form_yes"
	actionFormNo  = "hako_form_no"
	callbackForm  = "hako_form"
)

func (s *surface) stopButton() slack.Block {
	return slack.NewActionBlock("", button(actionStop, s.m.conversation(), s.words.stop))
}

func (s *surface) feedback() slack.Block {
	good := slack.NewFeedbackButton(plain(s.words.good), rating(true, s.answer))
	bad := slack.NewFeedbackButton(plain(s.words.bad), rating(false, s.answer))
	return slack.NewContextActionsBlock("", slack.NewFeedbackButtonsBlockElement(actionFeedback, good, bad))
}

func button(action, value, text string) *slack.ButtonBlockElement {
	return slack.NewButtonBlockElement(action, value, plain(text))
}

func plain(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
}
