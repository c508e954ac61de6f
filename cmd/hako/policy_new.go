package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

//go:embed starter.policy.yaml
var starterPolicy []byte

func (a *app) policyNewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "new [FILE]",
		Short: "Write a policy to start from",
		Long: `Write a policy to start from, where the configuration expects one, or to FILE: reading is free, what destroys or writes to other
systems is asked about, and the rest is there as comments. A file that exists is left alone.`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			path := c.Policy
			if len(args) > 0 {
				path = a.path(args[0])
			}
			if err := writeNew(path, starterPolicy); err != nil {
				return err
			}
			printf(a.stdout, "wrote %s\n", path)
			printf(a.stderr, "\nNext:\n  hako policy table\n  hako policy check\n")
			return nil
		},
	}
}

// writeNew writes a file that must not exist.
func writeNew(path string, data []byte) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already: name another file, or remove it", path)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = file.Write(data)
	return err
}
