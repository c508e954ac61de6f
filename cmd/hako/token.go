package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/connection"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/strictyaml"
)

func (a *app) tokenCommand() *cobra.Command {
	return groupCommand("token",
		"Create, list and revoke bearer tokens for clients over HTTP and for the console, and end logins",
		a.tokenCreateCommand(), a.tokenListCommand(), a.tokenRevokeCommand(), a.tokenBlockCommand(),
		a.tokenNewCommand())
}

// tokenFlags are the flags that describe a new token.
type tokenFlags struct {
	bearer.Token
	expires string
}

func (f *tokenFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.User, "user", "", "the user whom its calls are attributed to (default NAME)")
	flags.StringVar(&f.Role, "role", "", "make a token for the console, with this role: viewer, approver or admin")
	flags.StringVar(&f.expires, "expires", "", "when the token expires: its last day (YYYY-MM-DD) or a time (RFC 3339)")
}

// check checks the flags for a token with this name.
func (f *tokenFlags) check(cmd *cobra.Command, name string) (err error) {
	f.Name = name
	if f.expires != "" {
		if f.Expires, err = config.ParseExpiry(f.expires); err != nil {
			return usageError(cmd, fmt.Errorf("--expires %q is not a date such as 2027-12-31", f.expires))
		}
	}
	if f.Role != "" && !slices.Contains(console.Roles, console.Role(f.Role)) {
		return usageError(cmd, strictyaml.Unknown("role", f.Role, []string{"viewer", "approver", "admin"}))
	}
	return nil
}

// use returns the instructions for using a token.
func (f *tokenFlags) use() string {
	if f.Role != "" {
		return "It logs in to the console"
	}
	return "Clients send it in the header  Authorization: Bearer TOKEN"
}

func (a *app) tokenCreateCommand() *cobra.Command {
	f := new(tokenFlags)
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a bearer token in the store",
		Long: `Create a bearer token in the store: for MCP clients, or with --role for a person who logs in to the
console. All replicas accept it at once. It is printed once, on standard output; the store keeps only its hash.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, args[0]); err != nil {
				return err
			}
			return a.withAccess(cmd, func(c *config.Config, access *server.Access) error {
				if err := c.CheckTenant(f.Tenant); err != nil {
					return err
				}
				var text string
				var r *bearer.Record
				operation, by := console.TokenOperation(&f.Token), audit.ProcessUser()
				err := a.audited(cmd.Context(), c, operation, func() (err error) {
					text, r, err = access.Tokens.Create(cmd.Context(), f.Token, by, server.ConfiguredTokens(c))
					return err
				})
				if err != nil {
					return err
				}
				if a.asJSON {
					return a.printJSON(console.NewToken(text, r))
				}
				printf(a.stderr, "The token, which is shown only now. %s.\n", f.use())
				if c.HTTP.Authentication(nil) == nil && f.Role == "" {
					printf(a.stderr, "hako does not require a token from MCP clients yet: "+
						"set http.auth.required: true\n")
				}
				return printf(a.data(), "%s\n", text)
			})
		},
	}
	f.add(cmd)
	a.tenantFlag(cmd, &f.Tenant)
	cmd.Flags().StringSliceVar(&f.Scopes, "scopes", nil, "the scopes of the token, as in http.auth.scopes")
	return a.withJSON(cmd)
}

func (a *app) tokenListCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List bearer tokens, logins of MCP clients and blocked users",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withAccess(cmd, func(_ *config.Config, access *server.Access) error {
				list, err := access.List(cmd.Context())
				if err != nil {
					return err
				}
				return show(a, list, printAccess)
			})
		},
	})
}

func (a *app) tokenRevokeCommand() *cobra.Command {
	user, tenant := "", ""
	cmd := &cobra.Command{
		Use:   "revoke [TOKEN | LOGIN | --user USER]",
		Short: "Revoke a bearer token of the store, end a login, or both for all of a user",
		Long: fmt.Sprintf(`Revoke a bearer token of the store by its name or its first characters, or end a login of an
MCP client by its ID. 'hako token list' shows both. All replicas follow within %.0f seconds.

--user is for somebody who leaves: it revokes all tokens of the user, and ends all logins and console sessions. With
--tenant it leaves out the user's other tenants and the console, which has no tenants.

Tokens of the configuration have to be removed from it. Tokens of OAuth issuers: see 'hako token block'.`,
			bearer.Delay.Seconds()),
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (user != "") || tenant != "" && user == "" {
				return usageError(cmd, errors.New("give either a token or login, or --user, perhaps with --tenant"))
			}
			return a.withAccess(cmd, func(c *config.Config, access *server.Access) (err error) {
				record := func(o *audit.Operation, do func() error) error { return a.audited(cmd.Context(), c, o, do) }
				var revoked *server.Revoked
				if user != "" {
					revoked, err = access.RevokeUser(cmd.Context(), user, tenant, audit.ProcessUser(), record)
				} else {
					revoked, err = access.Revoke(cmd.Context(), args[0], audit.ProcessUser(), record)
				}
				if err != nil {
					return err
				}
				return show(a, revoked, printRevoked)
			})
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "revoke everything of this user")
	a.tenantFlag(cmd, &tenant)
	cmd.Flags().Lookup("tenant").Usage = "with --user: only what the user has in this tenant"
	return a.withJSON(cmd)
}

// withAccess calls do with what the configuration and its store let in.
func (a *app) withAccess(cmd *cobra.Command, do func(*config.Config, *server.Access) error) error {
	return a.withStore(cmd, func(c *config.Config, s *store.Store) error {
		access, err := server.OpenAccess(cmd.Context(), c, s)
		if err != nil {
			return err
		}
		return do(c, access)
	})
}

func (a *app) tokenNewCommand() *cobra.Command {
	f := new(tokenFlags)
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a bearer token for the configuration",
		Long: `Make a bearer token for the configuration. It is printed once, on standard error; hako keeps only its
hash. The entry for the configuration file goes to standard output: for clients of MCP, or with --role for somebody who
logs in to the console.`,
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
			printf(a.stderr, "The token, which is shown only now:\n\n  %s\n\n%s\n"+
				"Put this under %s in hako.yaml:\n\n", text, f.use(), key)
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

// printAccess prints bearer tokens and logins of MCP clients.
func printAccess(out io.Writer, list *server.AccessList) error {
	const tokens = "TOKEN\tNAME\tUSER\tFOR\tSTATE\tEND\tLAST USED\tCREATED BY"
	err := printTable(out, tokens, list.Tokens, func(t console.TokenItem) []any {
		use := "MCP"
		if t.Role != "" {
			use = "console, " + string(t.Role)
		}
		return []any{cmp.Or(t.ID, t.Setting), t.Name, t.User, use, t.State, moment(t.Expires), moment(t.Used),
			dash(t.Creator)}
	})
	if err == nil && len(list.Logins) > 0 {
		fmt.Fprintln(out)
		const logins = "LOGIN\tUSER\tTENANT\tCLIENT\tSCOPES\tEND\tCREATED"
		err = printTable(out, logins, list.Logins, func(l *connection.Login) []any {
			return []any{l.ID, l.User, dash(l.Tenant), dash(l.Client), dash(strings.Join(l.Scopes, " ")),
				moment(l.Expires),
				moment(l.Created)}
		})
	}
	if err == nil && len(list.Blocks) > 0 {
		fmt.Fprintln(out)
		err = printTable(out, "BLOCKED\tISSUER\tSINCE\tBY", list.Blocks, func(b bearer.Block) []any {
			return []any{b.User, b.Issuer, moment(b.Blocked), b.By}
		})
	}
	return err
}

// printRevoked prints what was revoked, and what remains.
func printRevoked(out io.Writer, r *server.Revoked) error {
	for _, t := range r.Tokens {
		printf(out, "Revoked %s (%s)\n", t.Name, t.ID)
	}
	for _, l := range r.Logins {
		printf(out, "Ended the login of %s with %s (%s)\n", l.User,
			cmp.Or(l.Client, "an unnamed client"), l.ID)
	}
	if r.Sessions > 0 {
		printf(out, "Ended sessions in the console: %d\n", r.Sessions)
	}
	for _, t := range r.Remaining {
		printf(out, "Still valid: %s, because it is in the configuration: take it out of %s\n",
			t.Name, t.Setting)
	}
	return nil
}
