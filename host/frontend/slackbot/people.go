package slackbot

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/slack-go/slack"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/visible"
)

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

// homeFromEvent returns the home of a person according to an event or a click, which name it in shared channels (Slack
// Connect): the first team that is not this workspace, else this workspace if it is named, else "".
func (w *workspace) homeFromEvent(teams ...string) (home string) {
	own := w.account.Load().team
	for _, team := range teams {
		if team != "" && team != own {
			return team
		}
		home = cmp.Or(home, team)
	}
	return home
}

// homeOf returns the workspace of a person, or "" for this one. fromEvent comes from the event, known from users.info.
// Only users.info shows that a member of another workspace of the same organization is also a member of this one.
func (w *workspace) homeOf(known remembered, fromEvent string) string {
	own := w.account.Load().team
	home := cmp.Or(fromEvent, known.team, unknownHome)
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
func (w *workspace) person(ctx context.Context, id, fromEvent string) (p person, err error) {
	p = w.visitor(ctx, id, fromEvent)
	p.groups, err = w.groups(ctx, id)
	return p, err
}

// visitor returns a person without groups.
func (w *workspace) visitor(ctx context.Context, id, fromEvent string) person {
	known := w.lookUp(ctx, id)
	p := person{id: id, locale: known.locale, home: w.homeOf(known, fromEvent)}
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
