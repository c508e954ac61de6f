package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/internal/doctor"
)

func (a *app) doctorCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can enforce, and what is wrong with the configuration",
		Long: `Report what this machine can enforce, and problems of the configuration with their remedies. No file is changed.

A hako serve on this machine is asked for its version, store and certificate, and for plugins and upstream servers
that are not in service.

Exit codes: 0 everything works, perhaps with warnings, 1 something does not work.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) doctor(cmd *cobra.Command, asJSON bool) error {
	findings := doctor.Machine()
	if c, err := a.config(cmd); err != nil {
		findings = append(findings, doctor.Unusable(err))
	} else {
		a.warnUnshipped(c)
		findings = append(findings, doctor.Configuration(cmd.Context(), c, shippedPlugins())...)
		findings = append(findings, doctor.Running(cmd.Context(), c, thisBuild().Version)...)
	}
	if asJSON {
		if err := a.printJSON(findings); err != nil {
			return err
		}
	}
	failed := false
	for _, f := range findings {
		failed = failed || f.Level == doctor.LevelError
		if asJSON {
			continue
		}
		printf(a.stdout, "%-8s %s: %s\n", f.Level, f.Check, f.Message)
		if f.Remedy != "" {
			printf(a.stdout, "%-8s -> %s\n", "", f.Remedy)
		}
	}
	if failed {
		return &exitError{code: exitFailed}
	}
	return nil
}
