package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/hako-run/hako/host/broker/exec/confine"
	"github.com/hako-run/hako/host/grant"
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

// choose puts the flags into the choices. What none of them names stays as it was.
func (f *execFlags) choose(c *grant.Choices) {
	if len(f.programs)+len(f.env)+len(f.ports) == 0 && !f.flags.Changed("unconfined") {
		return
	}
	if c.Exec == nil {
		c.Exec = &grant.ExecChoice{}
	}
	for _, list := range []struct{ flag, choice *[]string }{{&f.programs, &c.Exec.Programs}, {&f.env, &c.Exec.Env}, {&f.ports, &c.Exec.Ports}} {
		if len(*list.flag) > 0 {
			*list.choice = *list.flag
		}
	}
	if f.flags.Changed("unconfined") {
		c.Exec.Unconfined = f.unconfined
	}
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
