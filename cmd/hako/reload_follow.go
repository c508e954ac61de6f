package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/console"
	"github.com/hako-run/hako/host/manifest"
)

// orders are orders to read the configuration again, until stop is called.
func (a *app) orders() (orders <-chan os.Signal, stop func()) {
	if a.hangups != nil {
		return a.hangups, func() {}
	}
	return hangups()
}

// configPoll is how often the configuration file is looked at.
const configPoll = 500 * time.Millisecond

// follow reads the configuration again whenever its file has changed and on every hang-up, until ctx ends.
func (r *reloader) follow(ctx context.Context, hangups <-chan os.Signal) error {
	look := time.NewTicker(configPoll)
	defer look.Stop()
	seen, taken := "", ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangups:
			_, _ = r.reload(ctx, audit.Subject{Frontend: "signal", User: audit.ProcessUser()}) // which has been told
		case <-look.C:
			stamp := r.stamp()
			if settled := stamp == seen; settled && stamp != taken {
				taken = stamp
				if r.changed() {
					_, _ = r.reload(ctx, audit.Subject{Frontend: "file"}) // which has been told
				}
			}
			seen = stamp
		}
	}
}

// stamp tells one state of the file from another.
func (r *reloader) stamp() string {
	path, err := r.source.Path()
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "missing"
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size())
}

// changed reports whether the file holds something else than what was read last.
func (r *reloader) changed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Digest() != r.read
}

// forConsole is reload for the console.
func (r *reloader) forConsole(ctx context.Context, by audit.Subject) (*console.Reloaded, error) {
	answer, err := r.reload(ctx, by)
	if err != nil {
		return nil, err
	}
	return &console.Reloaded{Changed: answer.Applied, NeedRestart: answer.Restart, Others: answer.Others,
		Warnings: answer.Warnings}, nil
}

// problems are what somebody who operates the host should look at.
func (r *reloader) problems(language string) []console.Problem {
	if err := r.outcome.Load().err; err != nil {
		return []console.Problem{{Kind: "reload", Text: err.Error(), Remedy: manifest.Text{
			"en": "Mend the configuration (hako config check); until then the one before stays in force.",
			"ja": "設定を修正してください (hako config check)。それまでは以前の設定が有効です。",
		}.In(language)}}
	}
	return nil
}
