package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/store"
)

func (a *app) approvalsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "List and answer pending approvals",
		Long: `List pending approvals: calls for which the policy requires approval and whose callers cannot, or may not,
approve them. Whoever can write to hako's store is an operator and may answer any of them.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return group(cmd, args)
			}
			return a.withApprovals(cmd, func(_ *config.Config, approvals *approval.Queue) error {
				return a.listApprovals(cmd.Context(), approvals)
			})
		},
	}
	cmd.AddCommand(a.approvalAnswerCommand("approve", "Approve a call", true),
		a.approvalAnswerCommand("refuse", "Deny a call", false), a.approvalsWatchCommand(),
		a.approvalsHistoryCommand())
	return a.withJSON(cmd)
}

// withApprovals calls do with the approval queue of the configured store.
func (a *app) withApprovals(cmd *cobra.Command, do func(*config.Config, *approval.Queue) error) error {
	return a.withStore(cmd, func(c *config.Config, s *store.Store) error {
		approvals, err := approval.New(cmd.Context(), s, nil)
		if err != nil {
			return err
		}
		return do(c, approvals)
	})
}

func (a *app) listApprovals(ctx context.Context, approvals *approval.Queue) error {
	list, err := approvals.Waiting(ctx, nil)
	if err != nil {
		return err
	}
	return showList(a, list, "Nothing waits.", printApprovals)
}

func (a *app) approvalAnswerCommand(name, short string, yes bool) *cobra.Command {
	return &cobra.Command{
		Use:   name + " ID",
		Short: short,
		Long: short + ` that waits. The first answer counts, and it counts for that call alone, unless the policy's rule
lets an approval apply for longer. It is recorded in the audit log.`,
		Args:              arguments(1, 1),
		ValidArgsFunction: a.completeApprovals,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withApprovals(cmd, func(c *config.Config, approvals *approval.Queue) error {
				q, err := approvals.Question(cmd.Context(), args[0])
				if err != nil {
					return fmt.Errorf("%s: %w: hako approvals lists the pending ones", args[0], err)
				}
				printf(a.stderr, "%s\n", block(q.Text(c.Locale)))
				return a.answer(cmd.Context(), c, approvals, q, yes)
			})
		},
	}
}

// answer answers a question as an operator, and records it.
func (a *app) answer(ctx context.Context, c *config.Config, approvals *approval.Queue, q *approval.Question,
	yes bool) error {
	word := map[bool]string{true: "approved", false: "refused"}[yes]
	err := a.audited(ctx, c, console.AnswerOperation(q, word, ""), func() error {
		return approvals.Answer(ctx, q.ID,
			approval.Answer{Yes: yes, By: approval.Person{User: audit.ProcessUser(), Operator: true}})
	})
	if err != nil {
		return fmt.Errorf("%s: %w", q.ID, err)
	}
	return printf(a.stdout, "%s %s\n", word, q.ID)
}

func (a *app) completeApprovals(cmd *cobra.Command, args []string, _ string) (names []cobra.Completion,
	_ cobra.ShellCompDirective) {
	quiet := &app{stdout: io.Discard, stderr: io.Discard, dir: a.dir, file: a.file}
	err := quiet.withApprovals(cmd, func(_ *config.Config, approvals *approval.Queue) error {
		list, err := approvals.Waiting(cmd.Context(), nil)
		for _, q := range list {
			names = append(names, cobra.CompletionWithDesc(q.ID, q.Tool))
		}
		return err
	})
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// printApprovals prints the questions that wait.
func printApprovals(out io.Writer, list []*approval.Question) error {
	return printTable(out, "ID\tTOOL\tASKED BY\tRULE\tTIME LEFT", list, func(q *approval.Question) []any {
		return []any{q.ID, q.Tool, fmt.Sprintf("%s (%s)", dash(q.Caller.User), q.Caller.Frontend), q.Rule,
			terminal.TimeLeft(q)}
	})
}
