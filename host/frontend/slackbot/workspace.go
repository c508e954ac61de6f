package slackbot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/retry"
)

// workspace is a running Workspace.
type workspace struct {
	Workspace
	bot    *Bot
	logger *slog.Logger

	botToken, appToken, signingSecret *secret.Secret
	client                            *client
	// refused has an element when Slack has refused the token.
	refused chan struct{}
	// account is set once Slack has accepted the token.
	account    atomic.Pointer[account]
	connection atomic.Pointer[Status]
	people     people
	// open is closed by opened when events can arrive.
	open   <-chan struct{}
	opened func()
}

// account is the bot's identity in its workspace.
type account struct {
	api *slack.Client
	// team, user and bot are the IDs of the workspace, of the bot as a user, and of the bot.
	team, user, bot string
}

func newWorkspace(b *Bot, w Workspace) *workspace {
	open, refused := make(chan struct{}), make(chan struct{}, 1)
	return &workspace{
		Workspace: w, bot: b, logger: b.options.Logger.With("workspace", w.Name), open: open,
		opened:   sync.OnceFunc(func() { close(open) }),
		botToken: secret.New(w.BotToken), appToken: secret.New(w.AppToken),
		signingSecret: secret.New(w.SigningSecret),
		refused:       refused, client: b.client(func() {
			select {
			case refused <- struct{}{}:
			default:
			}
		}),
	}
}

// checkURL checks that tokens are sent over https or to this machine.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || !strings.HasSuffix(u.Path, "/") {
		return fmt.Errorf(`apiUrl %q is not the URL of an API: it ends in "/api/"`, text)
	}
	if !address.IsConfidential(u) {
		return fmt.Errorf("apiUrl %q would send tokens in the clear: use https", text)
	}
	return nil
}

// Intervals between attempts to sign in.
const (
	leastWait = time.Second
	mostWait  = 5 * time.Minute
)

// run keeps the bot signed in and connected until ctx ends.
func (w *workspace) run(ctx context.Context) error {
	wait := leastWait
	for ctx.Err() == nil {
		began := time.Now()
		err := w.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > mostWait {
			wait = leastWait
		}
		wait = w.again(ctx, wait, err)
	}
	return nil
}

// again waits for the next attempt to sign in and returns the wait for the one after it.
func (w *workspace) again(ctx context.Context, wait time.Duration, err error) time.Duration {
	w.became(Down, err)
	if isAuth(err) {
		w.botToken.Forget()
		w.appToken.Forget()
		wait = mostWait
		w.logger.Error("Slack rejects the token: replace it, or reinstall the app; retrying",
			"in", wait, "err", err)
	} else {
		w.logger.Warn("not connected to Slack: retrying", "in", wait, "err", err)
	}
	_ = retry.Wait(ctx, wait) // whether ctx has ended, the next attempt sees
	return min(2*wait, mostWait)
}

// connect signs in and handles events until that fails or ctx ends.
func (w *workspace) connect(ctx context.Context) error {
	api, err := w.signIn(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { w.renew(ctx) })
	defer renewing.Wait()
	defer cancel()
	w.bot.recoverLost(ctx, w)
	if w.AppToken.IsZero() {
		w.became(Up, nil)
		w.opened()
		<-ctx.Done()
		return ctx.Err()
	}
	return w.socket(ctx, api)
}

// renew signs in again whenever Slack has refused the token, until ctx ends. Socket Mode continues meanwhile, because
// it does not depend on the bot's token.
func (w *workspace) renew(ctx context.Context) {
	for {
		select {
		case <-w.refused:
		case <-ctx.Done():
			return
		}
		w.botToken.Forget()
		wait := leastWait
		for _, err := w.signIn(ctx); err != nil && ctx.Err() == nil; _, err = w.signIn(ctx) {
			wait = w.again(ctx, wait, err)
		}
	}
}

// signIn reads the tokens and asks Slack whose they are.
func (w *workspace) signIn(ctx context.Context) (*slack.Client, error) {
	token, err := readToken(ctx, w.botToken, "botToken", w.BotToken)
	if err != nil {
		return nil, err
	}
	options := []slack.Option{slack.OptionHTTPClient(w.client)}
	if w.APIURL != "" {
		options = append(options, slack.OptionAPIURL(w.APIURL))
	}
	if !w.AppToken.IsZero() {
		appToken, err := readToken(ctx, w.appToken, "appToken", w.AppToken)
		if err != nil {
			return nil, err
		}
		options = append(options, slack.OptionAppLevelToken(appToken))
	}
	api := slack.New(token, options...)
	who, err := api.AuthTestContext(ctx)
	select {
	case <-w.refused: // by this request, or before
	default:
	}
	if err != nil {
		return nil, fmt.Errorf("auth.test: %w", err)
	}
	w.account.Store(&account{api: api, team: who.TeamID, user: who.UserID, bot: who.BotID})
	w.logger.Info("signed in to Slack", "team", who.TeamID, "bot", who.UserID)
	return api, nil
}

// readToken reads the token of a workspace's key. It reads the source again next time if the value cannot be a token.
func readToken(ctx context.Context, secret *secret.Secret, key string, source secret.Source) (string, error) {
	text, err := secret.Read(ctx)
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	if err := CheckToken(key, text); err != nil {
		secret.Forget()
		return "", fmt.Errorf("%v: %w", source, err)
	}
	return text, nil
}

// authErrors are Slack's errors for tokens that will not work again without the operator.
var authErrors = []string{
	"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "org_login_required",
	"team_access_not_granted", "app_uninstalled",
}

func isAuth(err error) bool { return slices.Contains(authErrors, slackError(err)) }

// slackError returns the code of Slack's error response, or "".
func slackError(err error) string {
	if answered, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
		return answered.Err
	}
	return ""
}

// of returns the workspace of a team if it has the same app as w: one app may be installed in several workspaces.
func (w *workspace) of(team string) *workspace {
	for _, other := range w.bot.workspaces {
		if a := other.account.Load(); a != nil && a.team == team && (other == w || other.sameApp(w)) {
			return other
		}
	}
	return nil
}

// sameApp compares the sources of the app's secrets.
func (w *workspace) sameApp(other *workspace) bool {
	return w.AppToken.String() == other.AppToken.String() && w.SigningSecret.String() == other.SigningSecret.String() &&
		slices.Equal(w.AppToken.Command, other.AppToken.Command) && slices.Equal(w.SigningSecret.Command,
		other.SigningSecret.Command)
}
