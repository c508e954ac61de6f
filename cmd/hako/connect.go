package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/audit"
)

func (a *app) connectCommand() *cobra.Command {
	var how terminal.Consenting
	tenant := ""
	cmd := &cobra.Command{
		Use:   "connect NAME",
		Short: "Connect a credential that needs your consent at its provider",
		Long: `Connect a credential of hako.yaml that needs your consent at its provider, such as freee: the provider's
page opens in a browser and redirects to hako on this machine. With --no-browser you open the page anywhere and paste
the code. With --device, or if the provider supports nothing else, you enter a short code on another device.

The connection is stored encrypted, for one tenant, and renewed automatically. Plugins never see it.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			operation := &audit.Operation{
				Action:  "credential.connect",
				Subject: audit.Subject{Tenant: tenant},
				Target:  audit.Target{Name: args[0]},
			}
			return a.changeCredentials(cmd, operation,
				func(b *credential.Broker) error {
					status, err := a.consenter().Connect(cmd.Context(), b, tenant, args[0], how)
					if err != nil {
						return err
					}
					return printf(a.stdout, "%s is connected%s\n", args[0], facts(status))
				})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "connect it for this tenant")
	cmd.Flags().BoolVar(&how.NoBrowser, "no-browser", false, "open no browser and listen to nothing: paste the code")
	cmd.Flags().BoolVar(&how.Device, "device", false, "enter a code on another device")
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

// consenter asks the operator for a consent.
func (a *app) consenter() *terminal.Consenter {
	return &terminal.Consenter{IO: a.terminal(), Browse: a.browse}
}

// facts describes a connection.
func facts(s *credential.Status) string {
	var tenant string
	if s.Tenant != "" {
		tenant = " for tenant " + s.Tenant
	}
	return strings.Join(append([]string{tenant}, s.Facts()...), ", ")
}
