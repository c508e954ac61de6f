package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/store"
)

func (a *app) chatFeedbackCommand() *cobra.Command {
	texts := false
	cmd := &cobra.Command{
		Use:   "feedback",
		Short: "List people's feedback on answers",
		Long: `List people's feedback on answers, given with the buttons in Slack, newest first. With --texts the
questions and answers are shown too. Feedback is deleted with its conversation.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd, func(_ *config.Config, s *store.Store) error {
				list, err := chat.Feedbacks(cmd.Context(), s)
				if err != nil {
					return err
				}
				return showList(a, inspect.Feedback(list, texts), "There is no feedback.", printFeedback)
			})
		},
	}
	cmd.Flags().BoolVar(&texts, "texts", false, "also show the question and the answer")
	return a.withJSON(cmd)
}

// printFeedback prints people's ratings of answers, and the questions and answers where an entry has them.
func printFeedback(out io.Writer, list []inspect.FeedbackEntry) error {
	var rows [][]any
	for _, e := range list {
		rows = append(rows, []any{e.Time.Local().Format(time.DateTime), e.Rating, e.Tenant,
			fmt.Sprintf("%s (%s)", e.User, e.Frontend), e.Conversation, e.Answer})
		if e.Question+e.Text != "" {
			rows = append(rows, []any{"", "asked: " + strings.Join(strings.Fields(e.Question), " ")},
				[]any{"", "answered: " + strings.Join(strings.Fields(e.Text), " ")})
		}
	}
	const heading = "TIME\tRATING\tTENANT\tWHO\tCONVERSATION\tANSWER"
	return printTable(out, heading, rows, func(row []any) []any { return row })
}
