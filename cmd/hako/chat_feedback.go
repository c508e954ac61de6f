package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/chat"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/inspect"
)

func (a *app) chatFeedbackCommand() *cobra.Command {
	asJSON, texts := false, false
	cmd := &cobra.Command{
		Use:   "feedback",
		Short: "List what people thought of answers",
		Long: `List what people thought of answers, as they said with the buttons below them in Slack, the newest first. With --texts what was asked and
answered is there too. Feedback is deleted with its conversation.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			return a.withStore(cmd.Context(), c, func(s *store.Store) error {
				list, err := chat.Feedbacks(cmd.Context(), s)
				if err != nil {
					return err
				}
				return a.printFeedback(list, asJSON, texts)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&texts, "texts", false, "show what was asked and answered")
	return cmd
}

func (a *app) printFeedback(list []chat.Feedback, asJSON, texts bool) error {
	entries := inspect.Feedback(list, texts)
	switch {
	case asJSON:
		return a.printJSON(entries)
	case len(list) == 0:
		_, err := fmt.Fprintln(a.stderr, "There is no feedback.")
		return err
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TIME\tRATING\tTENANT\tWHO\tCONVERSATION\tANSWER")
	for _, e := range entries {
		printf(table, "%s\t%s\t%s\t%s (%s)\t%s\t%d\n", e.Time.Local().Format(time.DateTime), e.Rating, e.Tenant, e.User,
			e.Frontend, e.Conversation, e.Answer)
		if texts {
			printf(table, "\tasked: %s\n\tanswered: %s\n", strings.Join(strings.Fields(e.Question), " "),
				strings.Join(strings.Fields(e.Text), " "))
		}
	}
	return table.Flush()
}
