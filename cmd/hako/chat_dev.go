package main

import (
	_ "embed"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/cmd/hako/internal/config"
	"github.com/hako-run/hako/internal/fakes"
	modelscript "github.com/hako-run/hako/internal/fakes/script"
)

// devScript is what the model of "hako dev chat" answers where no other script is given.
//
//go:embed chat_dev.yaml
var devScript string

// devPolicy asks before anything leaves for another service.
const devPolicy = `version: 1
rules:
  - name: ask before writing elsewhere
    action: ask
    tools: [write_rows_to_google_sheet, send_slack_dm]
    reason: {en: it writes to another service, ja: 外部のサービスに書き込みます}
`

func (a *app) devChatCommand() *cobra.Command {
	var flags chatFlags
	path := ""
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk with a stand-in for a model, without any account",
		Long: `Talk with a stand-in for a model, which answers from a script and uses the shipped tools on the stand-ins of "hako dev fakes": the
whole way of a conversation, with a policy that asks before something is written. Nothing leaves the machine, and nothing is kept.

--script takes another script: docs/fakes.md describes them.`,
		Example: `  hako dev chat
  echo 東京の天気は？ | hako dev chat`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := devScript
			if path != "" {
				data, err := os.ReadFile(a.path(path))
				if err != nil {
					return err
				}
				text = string(data)
			}
			steps, err := modelscript.Parse([]byte(strings.NewReplacer("SPREADSHEET", fakes.Spreadsheet, "PERSON", fakes.SlackUser).Replace(text)))
			if err != nil {
				return usageError(cmd, err)
			}
			return a.devChat(cmd, steps, flags)
		},
	}
	cmd.Flags().StringVar(&path, "script", "", "what the model answers, in YAML")
	flags.add(a, cmd)
	return cmd
}

// devChat talks with a model that follows the script. What it needs is in a directory that is removed at the end.
func (a *app) devChat(cmd *cobra.Command, steps *modelscript.Script, flags chatFlags) (err error) {
	dir, err := os.MkdirTemp("", "hako-chat-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f := fakes.New()
	f.Anthropic.Script, f.OpenAI.Script = steps, steps
	server := &http.Server{Handler: f, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // until it is closed
	}()
	defer func() {
		err = errors.Join(err, server.Close())
		<-served
	}()
	c, err := a.devChatConfig(cmd, f, dir, "http://"+listener.Addr().String())
	if err != nil {
		return err
	}
	flags.fleeting = true
	return a.chat(cmd.Context(), c, flags)
}

// devChatConfig is a configuration for the stand-ins at url, with the files that it names in dir.
func (a *app) devChatConfig(cmd *cobra.Command, f *fakes.Fakes, dir, url string) (*config.Config, error) {
	if _, err := f.WriteConfig(dir, url); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "hako.policy.yaml"), []byte(devPolicy), 0o600); err != nil {
		return nil, err
	}
	return config.Load(config.Source{Dir: a.dir, File: filepath.Join(dir, "hako.yaml"), Flags: cmd.Flags()})
}
