package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/hako-run/hako/dev/fakes"
	"github.com/hako-run/hako/dev/fakes/slack/page"
	"github.com/hako-run/hako/internal/scratch"
)

// ServeFakes serves the fakes at an address until ctx ends. Their configuration is written into dir, or into a
// temporary directory if dir is empty. ready is called before with their URL and with the path and text of the
// configuration. Errors name the flag --address.
func ServeFakes(ctx context.Context, address, dir string, ready func(url, path, text string) error) (err error) {
	if dir == "" {
		var temp *scratch.Dir
		if temp, err = scratch.New("", "hako-fakes"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, temp.Remove()) }()
		dir = temp.Path
	}
	listener, err := listen(address)
	if err != nil {
		return err
	}
	f := fakes.New()
	url := "http://" + listener.Addr().String()
	text, err := f.WriteConfig(dir, url)
	if err == nil {
		err = ready(url, filepath.Join(dir, "hako.yaml"), text)
	}
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return serve(ctx, listener, f)
}

// ServePage serves the page of the fake Slack at an address until ctx ends. slackURL is the fake's address.
// ready is called before with the link to the page. Errors name the flag --address.
func ServePage(ctx context.Context, f *fakes.Fakes, slackURL, address string, ready func(url string) error) error {
	listener, err := listen(address)
	if err != nil {
		return err
	}
	o := page.Options{Slack: f.Slack, Bot: fakes.SlackBot, BotName: "hako", Token: rand.Text(), FileURL: slackURL}
	if err := ready(o.URL("http://" + listener.Addr().String())); err != nil {
		return errors.Join(err, listener.Close())
	}
	return serve(ctx, listener, page.New(o))
}

// listen listens on the address of the flag --address.
func listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--address: %w: choose another address, such as 127.0.0.1:0 for any free port", err)
	}
	return listener, nil
}

// serve serves HTTP until ctx ends. It closes the listener.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
