package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/doctor"
	"github.com/hako-run/hako/host/app/report"
)

func (a *app) doctorCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "doctor",
		Short: "Check the configuration and what this machine can enforce",
		Long: `Report what this machine can enforce, and problems of the configuration with their remedies. No file is
changed.

A hako serve on this machine is asked for its version, store and certificate, and for plugins and upstream servers that
are not in service.

Exit codes: 0 no errors (there may be warnings), 1 errors.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd) },
	})
}

func (a *app) doctor(cmd *cobra.Command) error {
	findings := doctor.Machine()
	if c, err := a.config(cmd); err != nil {
		findings = append(findings, doctor.Unusable(err))
	} else {
		a.warnUnshipped(c)
		findings = append(findings, doctor.Configuration(cmd.Context(), c, shippedPlugins())...)
		findings = append(findings, doctor.Running(cmd.Context(), c, thisBuild().Version)...)
	}
	err := show(a, findings, report.Findings)
	return failIf(slices.ContainsFunc(findings, doctor.Finding.IsError), err)
}
