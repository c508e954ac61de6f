package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/hako-run/hako/host/broker/exec/confine"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// execFlags are the flags of "plugin approve" for commands.
type execFlags struct {
	programs, env, ports []string
	unconfined           bool
	flags                *pflag.FlagSet
}

func (f *execFlags) add(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringArrayVar(&f.programs, "program", nil, `a program that the plugin may run, instead of those that it asks for or had; "*" for all that are installed`)
	flags.StringArrayVar(&f.env, "env", nil, "NAME, a variable of hako's environment that commands get; \"\" for none")
	flags.StringArrayVar(&f.ports, "port", nil, "a TCP port that commands may connect to; \"\" for none, and then no network")
	flags.BoolVar(&f.unconfined, "unconfined", false, "run commands also where the kernel cannot hold them to their folders")
}

// settle puts the flags into the consent. What none of them names stays as it was, at first what the plugin asks for.
func (f *execFlags) settle(c *grant.Consent) error {
	if asked := c.Asked.Exec; asked != nil && len(c.Exec.Programs) == 0 && asked.Programs[0] != manifest.AnyProgram {
		c.Exec.Programs = asked.Programs
	}
	if len(f.programs) > 0 {
		c.Exec.Programs = f.programs
	}
	if len(f.env) > 0 {
		c.Exec.Env = named(f.env)
	}
	if f.flags.Changed("unconfined") {
		c.Exec.Unconfined = f.unconfined
	}
	if len(f.ports) == 0 {
		return nil
	}
	c.Exec.Ports = nil
	for _, text := range named(f.ports) {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return fmt.Errorf("--port %q: write a number from 1 to 65535", text)
		}
		c.Exec.Ports = append(c.Exec.Ports, uint16(port))
	}
	return nil
}

// named are the elements of a list that are not empty.
func named(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
}

// checkExec says what keeps commands from running on this machine.
func checkExec(plugin string, g *grant.Exec) error {
	if g == nil || g.Unconfined {
		return nil
	}
	if support := confine.Check(); !support.Confines() || len(g.Ports) > 0 && !support.ConfinesPorts() {
		return fmt.Errorf("this machine cannot confine commands: %s\nTo run them all the same, with nothing but the rules to hold them: hako plugin approve %s --unconfined",
			support.Missing(), plugin)
	}
	return nil
}
