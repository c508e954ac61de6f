package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/report"
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
				return showList(a, inspect.Feedback(list, texts), "There is no feedback.", report.Feedback)
			})
		},
	}
	cmd.Flags().BoolVar(&texts, "texts", false, "also show the question and the answer")
	return a.withJSON(cmd)
}
