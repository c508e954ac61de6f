package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const missing = "—"

// text writes a report for people and models.
func (r reporter) text(rep *report) string {
	var b strings.Builder
	line := func(ja, en string, args ...any) { b.WriteString(r.lang.sprintf(ja, en, args...) + "\n") }
	line("%sの天気予報です。", "Weather forecast for %s.", r.heading(rep.Location))
	for _, d := range rep.Days {
		if rep.Requested == week {
			b.WriteString(r.weekLine(d) + "\n")
		} else {
			r.dayLines(line, d)
		}
	}
	b.WriteString("\n")
	line("%sが%sに発表。%s", "Issued by JMA (%s) on %s.%s", rep.Publisher, r.moment(rep.Reported), r.weekIssue(rep))
	if stations := r.stationsOf(rep.Days); len(stations) > 0 {
		line("気温の地点: %s", "Temperatures are for: %s", strings.Join(stations, r.lang.pick("／", "; ")))
	}
	if len(rep.OtherAreas) > 0 {
		line("この予報は%sのもの。ほかの予報区: %s", "The forecast is for %s. Other areas: %s", rep.Location.Area,
			r.lang.list(rep.OtherAreas))
	}
	for _, note := range rep.Notes {
		line("※ %s", "Note: %s", note)
	}
	if o := rep.Overview; o != nil {
		line("\n【天気概況】%s\n%s\n", "\nOverview (in Japanese): %s\n%s\n", o.Headline, o.Text)
	}
	b.WriteString(rep.Credit)
	return b.String()
}

// heading names the place with the area that the forecast is for, if that says more.
func (r reporter) heading(l reportLocation) string {
	var around []string
	for _, name := range []string{l.Prefecture, l.Area} {
		if name != l.Name && !slices.Contains(around, name) {
			around = append(around, name)
		}
	}
	if len(around) == 0 {
		return l.Name
	}
	return r.lang.sprintf("%s（%s）", "%s (%s)", l.Name, strings.Join(around, r.lang.pick(" ", ", ")))
}

func (r reporter) dayLines(line func(ja, en string, args ...any), d reportDay) {
	line("%s: %s、%s", "%s: %s; %s", r.dayName(d.date), r.weatherText(d), r.temperatures(d))
	if len(d.Slots) > 0 {
		line("  降水確率: %s", "  Chance of rain: %s", r.slots(d.Slots))
	} else if d.ChanceOfRain != nil {
		line("  降水確率: %d%%", "  Chance of rain: %d%%", *d.ChanceOfRain)
	}
	if d.Wind != "" {
		line("  風: %s", "  Wind (as issued): %s", d.Wind)
	}
	if d.Waves != "" {
		line("  波: %s", "  Waves (as issued): %s", d.Waves)
	}
	if d.Umbrella != "" {
		line("  傘: %s", "  Umbrella: %s", r.umbrella(d))
	}
}

func (r reporter) weekLine(d reportDay) string {
	chance := missing
	if d.ChanceOfRain != nil {
		chance = strconv.Itoa(*d.ChanceOfRain) + "%"
	}
	text := r.lang.sprintf("%s: %s、%s、降水確率 %s", "%s: %s; %s; rain %s", r.dayName(d.date), r.weatherText(d),
		r.temperatures(d), chance)
	if d.Reliability != "" {
		text += r.lang.sprintf("、信頼度 %s", "; reliability %s", d.Reliability)
	}
	return text
}

func (r reporter) weatherText(d reportDay) string {
	switch {
	case d.Weather == "":
		return missing
	case d.AsIssued != "":
		return d.Weather + " (" + d.AsIssued + ")"
	}
	return d.Weather
}

func (r reporter) temperatures(d reportDay) string {
	return r.lang.sprintf("最高気温 %s / 最低気温 %s", "high %s / low %s", celsius(d.High), celsius(d.Low))
}

func celsius(degrees *int) string {
	if degrees == nil {
		return missing
	}
	return strconv.Itoa(*degrees) + "°C"
}

func (r reporter) slots(slots []reportSlot) string {
	var texts []string
	for _, s := range slots {
		to := s.To.Hour()
		if to == 0 {
			to = 24
		}
		texts = append(texts, r.lang.sprintf("%d〜%d時 %d%%", "%02d-%02dh %d%%", s.From.Hour(), to, s.Percent))
	}
	return r.lang.list(texts)
}

func (r reporter) umbrella(d reportDay) string {
	chance := ""
	if d.ChanceOfRain != nil {
		chance = r.lang.sprintf("（降水確率は最大%d%%）", " (chance of rain up to %d%%)", *d.ChanceOfRain)
	}
	switch d.Umbrella {
	case umbrellaYes:
		return r.lang.pick("必要です", "take one") + chance
	case umbrellaMaybe:
		return r.lang.pick("念のため持っておくと安心です", "may be needed") + chance
	}
	return r.lang.pick("必要なさそうです", "probably not needed") + chance
}

// dayName is a date with its weekday and, for the first days, what people call it.
func (r reporter) dayName(date time.Time) string {
	name := date.Format("Mon 2 Jan")
	if r.lang == japanese {
		name = fmt.Sprintf("%d月%d日（%c）", date.Month(), date.Day(), []rune("日月火水木金土")[date.Weekday()])
	}
	switch date.Sub(midnight(r.now)) / (24 * time.Hour) {
	case 0:
		return r.lang.sprintf("今日 %s", "Today, %s", name)
	case 1:
		return r.lang.sprintf("明日 %s", "Tomorrow, %s", name)
	}
	return name
}

func (r reporter) moment(t time.Time) string {
	return t.Format(r.lang.pick("2006年1月2日15時04分", "2 Jan 2006 15:04 JST"))
}

func (r reporter) weekIssue(rep *report) string {
	if rep.WeekUpdated == nil || rep.WeekUpdated.Equal(rep.Reported) {
		return ""
	}
	return r.lang.sprintf("週間予報は%sに発表。", " The weekly part was issued on %s.", r.moment(*rep.WeekUpdated))
}

// stationsOf lists the stations of the days' temperatures, each with the days it is for if there are several.
func (r reporter) stationsOf(days []reportDay) []string {
	var names []string
	from := map[string]time.Time{}
	for _, d := range days {
		if d.Station != "" && !slices.Contains(names, d.Station) {
			names = append(names, d.Station)
			from[d.Station] = d.date
		}
	}
	for i, name := range names {
		if i > 0 {
			names[i] = r.lang.sprintf("%s（%sから）", "%s (from %s)", name, r.dayName(from[name]))
		}
	}
	return names
}
