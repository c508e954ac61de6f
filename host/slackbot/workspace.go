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
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/retry"
	"github.com/hako-run/hako/internal/visible"
)

// workspace is a running Workspace.
type workspace struct {
	Workspace
	bot    *Bot
	logger *slog.Logger

	botToken, appToken, signingSecret *credential.Secret
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

// person is a person in a workspace.
type person struct {
	id, locale string
	groups     []string
	// email is the address of a member of this workspace, if the app may read it and Slack has confirmed it.
	email string
	// home is the ID of the person's workspace if it is another one, or unknownHome.
	home string
}

// unknownHome is the home of people whose workspace is unknown. It is no partner's.
const unknownHome = "?"

// as returns the person as an approver.
func (w *workspace) as(p person) approval.Person {
	return approval.Person{Tenant: w.tenantOf(p), User: p.id, Groups: p.groups}
}

// tenantOf returns the tenant of calls by a person whom the workspace allows.
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

// told returns the home of a person according to an event or a click, which name it in shared channels (Slack Connect):
// the first team that is not this workspace, else this workspace if it is named, else "".
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

// homeOf returns the workspace of a person, or "" for this one. told is what the event says, known what users.info
// says. Only users.info knows that a member of another workspace of the same organization is also a member of this one.
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

// welcomes reports whether people of the workspace home may use the bot. "" is this workspace.
func (w *workspace) welcomes(home string) bool { return home == "" || w.Partners[home] != "" }

// Retention of data about people.
const (
	localeTime = time.Hour
	groupsTime = 2 * time.Minute
)

// people caches Slack's data about people, and the names of channels. The zero value is ready.
type people struct {
	asking sync.Mutex // held while Slack is asked for the groups, so that one request suffices
	mu     sync.Mutex // guards the fields below
	known  map[string]remembered
	groups map[string][]string // by user
	asked  time.Time           // when groups was read
}

// remembered has a person's language, name and confirmed e-mail address, until it expires.
type remembered struct {
	locale, name, email string
	// team and organisation are the person's home, if known. member reports whether the person is a member of
	// this workspace.
	team, organisation string
	member             bool
	until              time.Time
}

// person looks up a person, whose home an event may tell. Unknown fields are empty. It fails if the groups cannot be
// read, because permissions depend on them.
func (w *workspace) person(ctx context.Context, id, told string) (p person, err error) {
	p = w.visitor(ctx, id, told)
	p.groups, err = w.groups(ctx, id)
	return p, err
}

// visitor returns a person without groups.
func (w *workspace) visitor(ctx context.Context, id, told string) person {
	known := w.lookUp(ctx, id)
	p := person{id: id, locale: known.locale, home: w.homeOf(known, told)}
	if p.home == "" { // nobody here confirms addresses of other workspaces
		p.email = known.email
	}
	return p
}

// locale returns the person's language, a BCP 47 tag.
func (w *workspace) locale(ctx context.Context, id string) string { return w.lookUp(ctx, id).locale }

// name returns the person's ID, by which tools and mentions find them, with their name.
func (w *workspace) name(ctx context.Context, id string) string {
	return named(id, w.lookUp(ctx, id).name)
}

// named returns the ID and then the name, as shownName has it.
func named(id, name string) string {
	if name = shownName(name); name == "" {
		return id
	}
	return id + " (" + name + ")"
}

// shownName returns the name to show. People choose their names, so it is short and without punctuation that could
// imitate the rest of a line or another line.
func shownName(name string) string {
	name = strings.Map(func(r rune) rune {
		if visible.Hidden(r) && !unicode.IsSpace(r) {
			return -1
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune(" .'’・-_", r) {
			return r
		}
		return ' '
	}, name)
	return clip.Marked(strings.Join(strings.Fields(name), " "), maxCard)
}

// lookUp asks Slack about a person unless the answer is cached. Unknown fields get defaults.
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
		w.logger.Info("looking up the language and name of a person failed", "user", id, "err", err)
	default:
		w.logger.Warn("looking up the language and name of a person failed", "user", id, "err", err)
		if ok {
			return stale
		}
		return known
	}
	w.people.remember(id, known)
	return known
}

// remember caches what is known of a person or a channel.
func (p *people) remember(id string, known remembered) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) > maxPeople {
		p.known = map[string]remembered{}
	}
	p.known[id] = known
}

// channelName asks Slack for the name of a channel unless it is cached. It is empty if the bot may not know it.
func (w *workspace) channelName(ctx context.Context, id string) string {
	w.people.mu.Lock()
	known := w.people.known[id]
	w.people.mu.Unlock()
	if time.Now().Before(known.until) {
		return known.name
	}
	channel, err := w.account.Load().api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: id})
	switch code := slackError(err); {
	case err == nil:
		known.name = channel.Name
	case slices.Contains(strangerErrors, code):
		known.name = ""
	default:
		w.logger.Warn("looking up the name of a channel failed", "channel", id, "err", err)
		return known.name
	}
	known.until = time.Now().Add(localeTime)
	w.people.remember(id, known)
	return known.name
}

// strangerErrors are Slack's errors for people and channels that the app may not see.
var strangerErrors = []string{"user_not_found", "user_not_visible", "channel_not_found", "missing_scope"}

// maxPeople bounds the cached people and channels.
const maxPeople = 10_000

// groups returns the handles of the person's user groups.
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
		list, err = nil, nil // this app cannot read user groups
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

// of returns a person's groups. ok is false if they are not cached.
func (p *people) of(id string) (groups []string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.groups[id], p.groups != nil && time.Since(p.asked) < groupsTime
}

// in returns the cached members of a user group.
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

// refusal returns why the workspace does not allow a person, and who can change that.
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
