package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/server"
	"github.com/hako-run/hako/internal/terminal"
)

// consentTime is how long "hako connect" waits for the operator.
const consentTime = 10 * time.Minute

// connectFlags are those of "hako connect NAME".
type connectFlags struct {
	tenant            string
	noBrowser, device bool
}

func (a *app) connectCommand() *cobra.Command {
	var flags connectFlags
	cmd := &cobra.Command{
		Use:   "connect NAME",
		Short: "Connect a credential that needs your consent at its provider",
		Long: `Connect a credential of hako.yaml that needs your consent at its provider, such as freee: the provider's page opens in a browser, and
what you consent to there is sent back to hako on this machine. With --no-browser you open the page anywhere and paste the code. With
--device, or where the provider has nothing else, you enter a short code on another device.

The connection is stored encrypted, for one tenant, and renewed without you. Plugins never see it.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			operation := &audit.Operation{
				Action:  "credential.connect",
				Subject: audit.Subject{Tenant: flags.tenant},
				Target:  audit.Target{Name: args[0]},
			}
			return a.changeCredentials(cmd, operation,
				func(b *credential.Broker) error { return a.connect(cmd.Context(), b, args[0], flags) })
		},
	}
	cmd.Flags().StringVar(&flags.tenant, "tenant", "", "connect it for this tenant")
	cmd.Flags().BoolVar(&flags.noBrowser, "no-browser", false, "open no browser and listen to nothing: paste the code")
	cmd.Flags().BoolVar(&flags.device, "device", false, "enter a code on another device")
	cmd.AddCommand(a.connectStatusCommand(), a.connectRemoveCommand())
	return cmd
}

// changeCredentials calls do with the credentials of the configuration, and records it as o.
func (a *app) changeCredentials(cmd *cobra.Command, o *audit.Operation, do func(*credential.Broker) error) error {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	return a.audited(cmd.Context(), c, o, func() error { return a.credentialsOf(c, do) })
}

// withCredentials calls do with the credentials of the configuration.
func (a *app) withCredentials(cmd *cobra.Command, do func(*credential.Broker) error) error {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	return a.credentialsOf(c, do)
}

func (a *app) credentialsOf(c *config.Config, do func(*credential.Broker) error) error {
	b, err := server.NewCredentials(c, a.logger(c, server.LogLevels["warn"]), nil)
	if err != nil {
		return err
	}
	return errors.Join(do(b), b.Close())
}

func (a *app) connect(ctx context.Context, b *credential.Broker, name string, flags connectFlags) error {
	ctx, cancel := context.WithTimeoutCause(ctx, consentTime,
		errors.New("nobody gave the consent in time: run the command again"))
	defer cancel()
	var status *credential.Status
	var err error
	switch {
	case flags.device || b.OnlyDevice(flags.tenant, name):
		status, err = b.ConnectDevice(ctx, flags.tenant, name, a.showDeviceCode)
	case flags.noBrowser:
		status, err = a.connectByPasting(ctx, b, flags.tenant, name)
	default:
		status, err = b.Connect(ctx, flags.tenant, name, a.openPage)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = cmp.Or(context.Cause(ctx), err)
	}
	if err != nil {
		return err
	}
	return printf(a.stdout, "%s is connected%s\n", name, facts(status))
}

// facts describes a connection.
func facts(s *credential.Status) string {
	var tenant string
	if s.Tenant != "" {
		tenant = " for tenant " + s.Tenant
	}
	return strings.Join(append([]string{tenant}, s.Facts()...), ", ")
}

func (a *app) showDeviceCode(code credential.DeviceCode) {
	printf(a.stderr, "Open %s on any device and enter the code\n\n  %s\n\nbefore %s. Waiting ...\n",
		code.URL, code.UserCode, code.Expires.Format(time.TimeOnly))
	if code.CompleteURL != "" {
		printf(a.stderr, "Or open %s\n", code.CompleteURL)
	}
}

func (a *app) openPage(url string) {
	printf(a.stderr, "Give your consent on this page:\n\n  %s\n\n", url)
	browse := a.browse
	if browse == nil {
		browse = terminal.OpenBrowser
	}
	if err := browse(url); err != nil {
		printf(a.stderr, "No browser opens here (%v): open the page yourself on this machine, or use --no-browser.\n",
			err)
	}
	fmt.Fprintln(a.stderr, "Waiting ...")
}

// connectByPasting takes the code from standard input.
func (a *app) connectByPasting(ctx context.Context, b *credential.Broker, tenant, name string) (*credential.Status,
	error) {
	consent, err := b.Consent(ctx, tenant, name, "")
	if err != nil {
		return nil, err
	}
	printf(a.stderr, "Give your consent on this page, in any browser:\n\n  %s\n\n"+
		"Then paste the code that it shows, or the address of the page that you are sent to: ", consent.URL)
	pasted, err := a.terminal().ReadLine(ctx)
	if err != nil {
		return nil, err
	}
	return consent.Exchange(ctx, pasted)
}
