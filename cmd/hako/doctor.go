package main

import (
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/doctor"
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
	err := show(a, findings, printFindings)
	return failIf(slices.ContainsFunc(findings, doctor.Finding.IsError), err)
}

// printFindings prints what hako doctor found, each with its remedy.
func printFindings(out io.Writer, list []doctor.Finding) error {
	var errs []error
	for _, f := range list {
		errs = append(errs, printf(out, "%-8s %s: %s\n", f.Level, f.Check, f.Message))
		if f.Remedy != "" {
			errs = append(errs, printf(out, "%-8s -> %s\n", "", f.Remedy))
		}
	}
	return errors.Join(errs...)
}
