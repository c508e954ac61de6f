package slackbot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"

	"github.com/hako-run/hako/internal/strictjson"
)

// maxRequest bounds a request from Slack, in bytes.
const maxRequest = 1 << 20

// serveHTTP handles a request from Slack: an event, a click or a slash command. It responds after the event is stored.
// After an error status, Slack repeats an event.
func (w *workspace) serveHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(out, r.Body, maxRequest))
	if err != nil {
		http.Error(out, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	if err := w.verify(r, body); err != nil {
		w.bot.options.Observer.SlackEvent(kindOther, resultForbidden)
		w.logger.Warn("rejected a request without a valid Slack signature", "address", r.RemoteAddr, "err", err)
		http.Error(out, "the signature is invalid", http.StatusUnauthorized)
		return
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		w.serveEvent(out, r, body)
		return
	}
	form, err := url.ParseQuery(string(body))
	switch {
	case err != nil:
		w.invalid(out, err)
	case !w.ready():
		http.Error(out, "not signed in to Slack yet", http.StatusServiceUnavailable)
	case form.Has("payload"):
		w.serveAction(out, r, form.Get("payload"))
	default:
		w.serveCommand(out, r, form)
	}
}

// signedFor is the validity of a signature.
const signedFor = 5 * time.Minute

// verify checks that Slack signed the request in the last 5 minutes
// (docs.slack.dev/authentication/verifying-requests-from-slack). It uses the store's clock, which slack-go's verifier
// cannot: by this machine's clock, a replica with a wrong one would refuse all requests.
func (w *workspace) verify(r *http.Request, body []byte) error {
	secret, err := w.signingSecret.Read(r.Context())
	if err != nil {
		return err
	}
	stamp := r.Header.Get("X-Slack-Request-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return errors.New("it has no timestamp")
	}
	if age := w.bot.options.Store.Time().Sub(time.Unix(seconds, 0)); age.Abs() > signedFor {
		return fmt.Errorf("it was signed %s ago", age.Round(time.Second))
	}
	sum := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(sum, "v0:%s:%s", stamp, body) // a hash never fails
	if signature := "v0=" + hex.EncodeToString(sum.Sum(nil)); !hmac.Equal([]byte(signature),
		[]byte(r.Header.Get("X-Slack-Signature"))) {
		return errors.New("the signature does not match")
	}
	return nil
}

// ready reports whether Slack has accepted the token and Run is running.
func (w *workspace) ready() bool {
	select {
	case <-w.bot.begun:
		return w.account.Load() != nil && w.bot.ctx.Err() == nil
	default:
		return false
	}
}

func (w *workspace) serveEvent(out http.ResponseWriter, r *http.Request, body []byte) {
	var challenge struct{ Type, Challenge string }
	if err := errors.Join(strictjson.Check(body), json.Unmarshal(body, &challenge)); err != nil {
		w.invalid(out, err)
		return
	}
	if challenge.Type == slackevents.URLVerification {
		out.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(out, challenge.Challenge)
		return
	}
	if !w.ready() {
		http.Error(out, "not signed in to Slack yet", http.StatusServiceUnavailable)
		return
	}
	event, err := slackevents.ParseEvent(body, slackevents.OptionNoVerifyToken()) // the signature was verified
	if err != nil {
		w.bot.options.Observer.SlackEvent(kindOther, resultInvalid)
		w.logger.Warn("ignored an unknown event from Slack", "err", err)
		return // acknowledged, because Slack would only repeat it
	}
	if err := w.event(r.Context(), event); err != nil {
		w.logger.Error("storing an event failed: Slack will send it again", "err", err)
		http.Error(out, "try again", http.StatusServiceUnavailable)
	}
}

func (w *workspace) serveAction(out http.ResponseWriter, r *http.Request, payload string) {
	var callback slack.InteractionCallback
	if err := errors.Join(strictjson.Check([]byte(payload)), json.Unmarshal([]byte(payload), &callback)); err != nil {
		w.invalid(out, err)
		return
	}
	if answer := w.interaction(r.Context(), &callback); answer != nil {
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(answer) // fails if the client is gone
	}
}

func (w *workspace) serveCommand(out http.ResponseWriter, r *http.Request, form url.Values) {
	r.PostForm, r.Form = form, form
	command, err := slack.SlashCommandParse(r)
	if err == nil && command.Command == "" {
		err = errors.New("it has no command")
	}
	if err != nil {
		w.invalid(out, err)
		return
	}
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(w.command(r.Context(), &command)) // fails if the client is gone
}

// invalid responds to a request that Slack never sends.
func (w *workspace) invalid(out http.ResponseWriter, err error) {
	w.bot.options.Observer.SlackEvent(kindOther, resultInvalid)
	w.logger.Warn("ignored an unknown event from Slack", "err", err)
	http.Error(out, "not understood", http.StatusBadRequest)
}
