package slackbot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/slack-go/slack"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/internal/address"
)

// workspace is a Workspace at work.
type workspace struct {
	Workspace
	bot    *Bot
	logger *slog.Logger

	botToken, appToken, signingSecret *credential.Secret
	client                            *client
	// refused has something in it when Slack has refused the token.
	refused chan struct{}
	// account is what is known once Slack has taken the token.
	account atomic.Pointer[account]
	people  people
	// open is closed by opened, when something can come from Slack.
	open   <-chan struct{}
	opened func()
}

// account is the bot in its workspace.
type account struct {
	api *slack.Client
	// team, user and bot are IDs: of the workspace, and of the bot as a user and as a bot.
	team, user, bot string
}

func newWorkspace(b *Bot, w Workspace) *workspace {
	open, refused := make(chan struct{}), make(chan struct{}, 1)
	return &workspace{
		Workspace: w, bot: b, logger: b.options.Logger.With("workspace", w.Name), open: open,
		opened:   sync.OnceFunc(func() { close(open) }),
		botToken: credential.NewSecret(w.BotToken), appToken: credential.NewSecret(w.AppToken),
		signingSecret: credential.NewSecret(w.SigningSecret),
		refused:       refused, client: b.client(func() {
			select {
			case refused <- struct{}{}:
			default:
			}
		}),
	}
}

// checkURL holds that tokens are sent to https, or to this machine.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || !strings.HasSuffix(u.Path, "/") {
		return fmt.Errorf(`apiUrl %q is not the URL of an API: it ends in "/api/"`, text)
	}
	if !address.IsConfidential(u) {
		return fmt.Errorf("apiUrl %q would send tokens in the clear: use https", text)
	}
	return nil
}

// Waits between attempts to sign in.
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

// again waits until it is time for another attempt to sign in, and returns how long the wait after the next one is.
func (w *workspace) again(ctx context.Context, wait time.Duration, err error) time.Duration {
	if isAuth(err) {
		w.botToken.Forget()
		w.appToken.Forget()
		wait = mostWait
		w.logger.Error("Slack does not take the token: put a new one in its place, or install the app again; hako tries again", "in", wait, "err", err)
	} else {
		w.logger.Warn("not connected to Slack: hako tries again", "in", wait, "err", err)
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
	return min(2*wait, mostWait)
}

// connect signs in and takes what comes, until that fails or ctx ends.
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
		w.opened()
		<-ctx.Done()
		return ctx.Err()
	}
	return w.socket(ctx, api)
}

// renew signs in anew when Slack has refused the token, until ctx ends. Nothing else stops for that: what comes over
// Socket Mode does not hang on the bot's token.
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

// signIn reads the tokens and has Slack say whose they are.
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

// readToken reads what is under a key of the workspace, anew next time if it cannot be a token.
func readToken(ctx context.Context, secret *credential.Secret, key string, source credential.Source) (string, error) {
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

// authErrors are what Slack says of tokens that will not work again by themselves.
var authErrors = []string{
	"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "org_login_required",
	"team_access_not_granted", "app_uninstalled",
}

func isAuth(err error) bool { return slices.Contains(authErrors, slackError(err)) }

// slackError is the code of an error that Slack answered, or empty.
func slackError(err error) string {
	if answered, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
		return answered.Err
	}
	return ""
}

// of returns the workspace that a team is, if its requests come from the same app as w's: one app may be installed in
// several.
func (w *workspace) of(team string) *workspace {
	for _, other := range w.bot.workspaces {
		if a := other.account.Load(); a != nil && a.team == team && (other == w || other.sameApp(w)) {
			return other
		}
	}
	return nil
}

// sameApp compares where the secrets of the app come from.
func (w *workspace) sameApp(other *workspace) bool {
	return w.AppToken.String() == other.AppToken.String() && w.SigningSecret.String() == other.SigningSecret.String() &&
		slices.Equal(w.AppToken.Command, other.AppToken.Command) && slices.Equal(w.SigningSecret.Command,
		other.SigningSecret.Command)
}

// person is somebody in a workspace, as far as calls need to know.
type person struct {
	id, locale string
	groups     []string
	// email is the address of a member of this workspace, if the app may read it and Slack says that it is confirmed.
	email string
	// home is the ID of the workspace that the person comes from, where that is not this one; unknownHome if Slack does
	// not tell.
	home string
}

// unknownHome is the home of people of whom Slack does not tell where they come from. It is no partner's.
const unknownHome = "?"

// as is the person as somebody who answers questions.
func (w *workspace) as(p person) approval.Person {
	return approval.Person{Tenant: w.tenantOf(p), User: p.id, Groups: p.groups}
}

// tenantOf is the tenant that the person calls tools for. It is for people whom the workspace allows.
func (w *workspace) tenantOf(p person) string {
	if p.home != "" {
		return w.Partners[p.home]
	}
	return w.Tenant
}

// serves reports whether people of a tenant use the bot.
func (w *workspace) serves(tenant string) bool {
	return tenant == w.Tenant || slices.Contains(slices.Collect(maps.Values(w.Partners)), tenant)
}

// told is the home of a person as an event or a press names it, which it does in channels that are shared with other
// workspaces (Slack Connect): the first of teams that is not this workspace, else this one if it is named, else empty.
func (w *workspace) told(teams ...string) (home string) {
	own := w.account.Load().team
	for _, team := range teams {
		if team != "" && team != own {
			return team
		}
		home = cmp.Or(home, team)
	}
	return home
}

// homeOf is where a person comes from: empty for this workspace. told is what the event says, known what users.info
// does, which alone knows that somebody of another workspace of the same organisation is a member of this one as well.
func (w *workspace) homeOf(known remembered, told string) string {
	own := w.account.Load().team
	home := cmp.Or(told, known.team, unknownHome)
	if home == own {
		home = cmp.Or(known.team, home)
	}
	switch {
	case known.member || home == own:
		return ""
	case w.Partners[home] == "" && w.Partners[known.organisation] != "":
		return known.organisation
	}
	return home
}

// welcomes reports whether people of the workspace home may use the bot; empty is this one.
func (w *workspace) welcomes(home string) bool { return home == "" || w.Partners[home] != "" }

// How long what Slack says of people holds.
const (
	localeTime = time.Hour
	groupsTime = 2 * time.Minute
)

// people remembers what Slack says of them. The zero value is ready.
type people struct {
	asking sync.Mutex // held while Slack is asked for the groups: once is enough
	mu     sync.Mutex // guards what follows
	known  map[string]remembered
	groups map[string][]string // by user
	asked  time.Time           // when groups was
}

// remembered is somebody's language, name and confirmed e-mail address, and until when that holds.
type remembered struct {
	locale, name, email string
	// team and organisation are where the person comes from, as far as Slack tells. member says that they are a member
	// of this workspace.
	team, organisation string
	member             bool
	until              time.Time
}

// person looks somebody up, of whom an event tells where they come from. What Slack does not tell is left empty; a
// failure to learn the groups is an error, for permissions hang on them.
func (w *workspace) person(ctx context.Context, id, told string) (p person, err error) {
	p = w.visitor(ctx, id, told)
	p.groups, err = w.groups(ctx, id)
	return p, err
}

// visitor is a person without their groups.
func (w *workspace) visitor(ctx context.Context, id, told string) person {
	known := w.lookUp(ctx, id)
	p := person{id: id, locale: known.locale, home: w.homeOf(known, told)}
	if p.home == "" { // nobody here vouches for other workspaces' addresses
		p.email = known.email
	}
	return p
}

// locale is the person's language, a BCP 47 tag.
func (w *workspace) locale(ctx context.Context, id string) string { return w.lookUp(ctx, id).locale }

// name is the person's ID, by which tools and mentions find them, and what others call them.
func (w *workspace) name(ctx context.Context, id string) string {
	return named(id, w.lookUp(ctx, id).name)
}

// named puts the ID first. The name, which people choose themselves, comes after it, short and without the punctuation
// by which it could pass for the rest of a line, or for another line.
func named(id, name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune(" .'’・-_", r) {
			return r
		}
		return ' '
	}, name)
	if name = clip(strings.Join(strings.Fields(name), " "), maxCard); name == "" {
		return id
	}
	return id + " (" + name + ")"
}

// lookUp asks Slack for somebody, if it was not asked lately. What it does not tell is left at what is usual.
func (w *workspace) lookUp(ctx context.Context, id string) remembered {
	w.people.mu.Lock()
	known, ok := w.people.known[id]
	w.people.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known
	}
	stale := known
	known = remembered{locale: w.bot.options.Locale, until: time.Now().Add(localeTime)}
	user, err := w.account.Load().api.GetUserInfoContext(ctx, id)
	switch code := slackError(err); {
	case err == nil:
		known.locale, known.name = cmp.Or(user.Locale, known.locale), cmp.Or(user.Profile.DisplayName, user.RealName,
			user.Name)
		if user.IsEmailConfirmed {
			known.email = user.Profile.Email
		}
		known.team, known.organisation = user.TeamID, user.Enterprise.EnterpriseID
		known.member = slices.Contains(user.Enterprise.Teams, w.account.Load().team)
		if user.IsStranger && known.team == w.account.Load().team {
			known.team = unknownHome
		}
	case slices.Contains(strangerErrors, code): // it would say the same again, for each of their messages
		w.logger.Info("a person's language and name are not known", "user", id, "err", err)
	default:
		w.logger.Warn("a person's language and name are not known", "user", id, "err", err)
		if ok {
			return stale
		}
		return known
	}
	w.people.mu.Lock()
	defer w.people.mu.Unlock()
	if w.people.known == nil || len(w.people.known) > maxPeople {
		w.people.known = map[string]remembered{}
	}
	w.people.known[id] = known
	return known
}

// strangerErrors are what Slack says of people whom the app may not see.
var strangerErrors = []string{"user_not_found", "user_not_visible", "missing_scope"}

// maxPeople bounds what is remembered.
const maxPeople = 10_000

// groups are the handles of the person's user groups.
func (w *workspace) groups(ctx context.Context, id string) ([]string, error) {
	w.people.asking.Lock()
	defer w.people.asking.Unlock()
	if groups, ok := w.people.of(id); ok {
		return groups, nil
	}
	list, err := w.account.Load().api.GetUserGroupsContext(ctx, slack.GetUserGroupsOptionIncludeUsers(true))
	switch slackError(err) {
	case "":
	case "missing_scope", "plan_upgrade_required", "not_allowed_token_type":
		list, err = nil, nil // there are no user groups for this app
	}
	if err != nil {
		return nil, fmt.Errorf("usergroups.list: %w", err)
	}
	groups := map[string][]string{}
	for _, group := range list {
		for _, user := range group.Users {
			groups[user] = append(groups[user], group.Handle)
		}
	}
	w.people.mu.Lock()
	defer w.people.mu.Unlock()
	w.people.groups, w.people.asked = groups, time.Now()
	return groups[id], nil
}

// of are somebody's groups, not ok if Slack is to be asked.
func (p *people) of(id string) (groups []string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.groups[id], p.groups != nil && time.Since(p.asked) < groupsTime
}

// in are the members of a user group, as far as they were asked for.
func (p *people) in(handle string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []string
	for user, groups := range p.groups {
		if slices.Contains(groups, handle) {
			list = append(list, user)
		}
	}
	slices.Sort(list)
	return list
}

// refusal tells a person whom the workspace does not allow why, and who can change that.
func (w *workspace) refusal(p person) string {
	words := wordsFor(p.locale)
	switch {
	case p.home == unknownHome:
		return words.unknownHome
	case !w.welcomes(p.home):
		return fmt.Sprintf(words.stranger, escape(p.home))
	}
	return words.forbidden
}

// allows reports whether the person may use the bot in the channel.
func (w *workspace) allows(p person, channel string) bool {
	if !w.welcomes(p.home) {
		return false
	}
	if len(w.Channels) > 0 && !isDM(channel) && !slices.Contains(w.Channels, channel) {
		return false
	}
	if len(w.Users) == 0 && len(w.Groups) == 0 || slices.Contains(w.Users, p.id) {
		return true
	}
	return slices.ContainsFunc(p.groups, func(group string) bool { return slices.Contains(w.Groups, group) })
}

// isDM reports whether a channel is a direct message.
func isDM(channel string) bool { return strings.HasPrefix(channel, "D") }
