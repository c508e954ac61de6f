package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/bearer"
	"github.com/hako-run/hako/host/console"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/report"
	"github.com/hako-run/hako/internal/server"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create, list and revoke bearer tokens for clients over HTTP, and for the console",
		Args:  cobra.ArbitraryArgs,
		RunE:  group,
	}
	cmd.AddCommand(a.tokenCreateCommand(), a.tokenListCommand(), a.tokenRevokeCommand(), a.tokenNewCommand())
	return cmd
}

// tokenFlags says what a token is for.
type tokenFlags struct {
	bearer.Token
	expires string
}

func (f *tokenFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.User, "user", "", "the user that calls with it are made for (default NAME)")
	cmd.Flags().StringVar(&f.Role, "role", "", "make a token for the console, with this role: viewer, approver or admin")
	cmd.Flags().StringVar(&f.expires, "expires", "", "the last day on which the token is valid (YYYY-MM-DD), or the time at which it expires (RFC 3339)")
}

// check checks the flags for a token with this name.
func (f *tokenFlags) check(cmd *cobra.Command, name string) (err error) {
	f.Name = name
	if f.expires != "" {
		if f.Expires, err = config.ParseExpiry(f.expires); err != nil {
			return usageError(cmd, fmt.Errorf("--expires %q is no date such as 2027-12-31", f.expires))
		}
	}
	if f.Role != "" && !slices.Contains(console.Roles, console.Role(f.Role)) {
		return usageError(cmd, fmt.Errorf("--role %q does not exist: there are viewer, approver and admin", f.Role))
	}
	return nil
}

// use says what to do with a token.
func (f *tokenFlags) use() string {
	if f.Role != "" {
		return "It logs in to the console"
	}
	return "Clients send it in the header  Authorization: Bearer TOKEN"
}

func (a *app) tokenCreateCommand() *cobra.Command {
	f, asJSON := new(tokenFlags), false
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a bearer token in the store",
		Long: `Create a bearer token in the store: for MCP clients, or with --role for somebody who logs in to the console. All replicas accept it at
once. It is printed once, on standard output; the store keeps only its hash.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, args[0]); err != nil {
				return err
			}
			return a.withTokens(cmd, func(c *config.Config, tokens *bearer.Issued) error {
				if err := c.CheckTenant(f.Tenant); err != nil {
					return err
				}
				var text string
				var r *bearer.Record
				err := a.audited(cmd.Context(), c, console.TokenOperation("token.create", &f.Token), func() (err error) {
					text, r, err = tokens.Create(cmd.Context(), f.Token, audit.ProcessUser(), server.ConfiguredTokens(c))
					return err
				})
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(console.NewToken(text, r))
				}
				printf(a.stderr, "The token, which is shown only now. %s.\n", f.use())
				if open, err := c.HTTP.Authenticator(nil, nil); err == nil && open == nil && f.Role == "" {
					printf(a.stderr, "hako asks MCP clients for no token yet: set http.auth.required: true\n")
				}
				return printf(a.data(), "%s\n", text)
			})
		},
	}
	f.add(cmd)
	a.tenantFlag(cmd, &f.Tenant)
	cmd.Flags().StringSliceVar(&f.Scopes, "scopes", nil, "what it may be used for, as in http.auth.scopes")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) tokenListCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the bearer tokens of the store and the configuration",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTokens(cmd, func(c *config.Config, tokens *bearer.Issued) error {
				records, err := tokens.List(cmd.Context())
				if err != nil {
					return err
				}
				items := console.TokenItems(records, server.ConfiguredTokens(c), time.Now())
				if asJSON {
					return a.printJSON(items)
				}
				return report.Tokens(a.stdout, items)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) tokenRevokeCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "revoke TOKEN",
		Short: "Revoke a bearer token of the store",
		Long: fmt.Sprintf(`Revoke a bearer token of the store, by its name or its first characters as 'hako token list' shows them. All replicas refuse it within
%.0f seconds, and end its sessions in the console. A token of the configuration is revoked by taking it out of there.`, bearer.Delay.Seconds()),
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTokens(cmd, func(c *config.Config, tokens *bearer.Issued) error {
				var r *bearer.Record
				o := &audit.Operation{Action: "token.revoke", Target: audit.Target{Name: args[0]}}
				err := a.audited(cmd.Context(), c, o, func() (err error) {
					r, err = tokens.Revoke(cmd.Context(), args[0], audit.ProcessUser())
					return err
				})
				configured := func(t bearer.Token) bool { return t.Name == args[0] }
				switch {
				case errors.Is(err, bearer.ErrNone) && slices.ContainsFunc(server.ConfiguredTokens(c), configured):
					return fmt.Errorf("token %q is in the configuration: take it out of %s", args[0], c.Name())
				case err != nil:
					return err
				case asJSON:
					return a.printJSON(console.TokenItems([]*bearer.Record{r}, nil, time.Now())[0])
				}
				return printf(a.stdout, "Revoked %s (%s)\n", r.Name, r.ID)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// withTokens calls do with the tokens of the configuration's store.
func (a *app) withTokens(cmd *cobra.Command, do func(*config.Config, *bearer.Issued) error) error {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	return a.withStore(cmd.Context(), c, func(s *store.Store) error {
		tokens, err := bearer.Open(cmd.Context(), s)
		if err != nil {
			return err
		}
		return do(c, tokens)
	})
}

func (a *app) tokenNewCommand() *cobra.Command {
	f := new(tokenFlags)
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a bearer token for the configuration",
		Long: `Make a bearer token for the configuration. It is printed once, on standard error; hako keeps only its hash. The entry for the
configuration file goes to standard output: for clients of MCP, or with --role for somebody who logs in to the console.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, args[0]); err != nil {
				return err
			}
			key := "http.auth.tokens"
			if f.Role != "" {
				key = "console.tokens"
			}
			text, hash := bearer.New()
			printf(a.stderr, "The token, which is shown only now:\n\n  %s\n\n%s\nPut this under %s in hako.yaml:\n\n", text, f.use(), key)
			fmt.Fprintf(a.data(), "- name: %q\n  hash: %s\n", args[0], hash)
			for _, line := range [][2]string{{"role", f.Role}, {"user", f.User}, {"expires", f.expires}} {
				if line[1] != "" {
					fmt.Fprintf(a.data(), "  %s: %q\n", line[0], line[1])
				}
			}
			return nil
		},
	}
	f.add(cmd)
	return cmd
}
