package inspect

import (
	"time"

	"github.com/hako-run/hako/host/frontend/chat"
)

// FeedbackEntry is a person's rating of an answer, as JSON.
type FeedbackEntry struct {
	Time         time.Time `json:"time"`
	Rating       string    `json:"rating"`
	Tenant       string    `json:"tenant,omitempty"`
	User         string    `json:"user"`
	Frontend     string    `json:"frontend"`
	Conversation string    `json:"conversation"`
	Answer       int64     `json:"answer"`
	Question     string    `json:"question,omitempty"`
	Text         string    `json:"text,omitempty"`
}

// Feedback returns entries for people's feedback, with the questions and answers if texts is set.
func Feedback(list []chat.Feedback, texts bool) []FeedbackEntry {
	entries := []FeedbackEntry{}
	for _, f := range list {
		e := FeedbackEntry{f.Written.UTC(), "bad", f.Tenant, f.Person, f.Frontend, f.Conversation, f.Answer, "", ""}
		if f.Good {
			e.Rating = "good"
		}
		if texts {
			e.Question, e.Text = f.Question, f.Text
		}
		entries = append(entries, e)
	}
	return entries
}
