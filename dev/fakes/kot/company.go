package kot

import (
	"fmt"
	"net/http"
	"time"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
)

var jst = time.FixedZone("JST", 9*60*60)

const dateLayout = "2006-01-02"

// Employee is one person. What the fake makes up beyond these fields contains Canary.
type Employee struct {
	Key, Code           string
	LastName, FirstName string
	Division, Type      string
	Groups              []string
	Hired, Resigned     string // YYYY-MM-DD; Resigned is the last day, empty for none
	// Days has the notable days, by date. All others are without work.
	Days map[string]Day
}

// Canary is in every text that must never leave a plugin.
const Canary = "カナリア-canary"

// Day is the record of one day. Lengths are in minutes.
type Day struct {
	In, Out   string // HH:MM, with hours past 24 on the next day; empty for none
	Break     int
	Type      string // workdayTypeName; empty takes that of the day of the week
	Full      string // the name of a whole day's leave
	Half      string // of half a day's leave
	Hourly    string // of leave by the hour
	LeaveMins int    // its length
	Late      int
	Absent    bool
	Error     bool
}

// Demo returns made-up people with a month of May 2026.
func Demo() []*Employee {
	days := map[string]Day{}
	for day := 1; day <= 31; day++ {
		date := time.Date(2026, 5, day, 0, 0, 0, 0, jst)
		if date.Weekday() != time.Sunday && date.Weekday() != time.Saturday {
			days[date.Format(dateLayout)] = Day{In: "09:00", Out: "18:00", Break: 60}
		}
	}
	days["2026-05-11"] = Day{Full: "有休"}
	days["2026-05-12"] = Day{In: "13:00", Out: "18:00", Half: "有休"}
	days["2026-05-13"] = Day{In: "11:00", Out: "18:00", Break: 60, Hourly: "有休", LeaveMins: 120}
	days["2026-05-14"] = Day{In: "09:00", Out: "25:30", Break: 60}
	days["2026-05-15"] = Day{Full: "特休"}
	days["2026-05-16"] = Day{In: "10:00", Out: "12:00"}
	days["2026-05-17"] = Day{In: "10:00", Out: "13:00"}
	days["2026-05-18"] = Day{In: "09:00", Error: true}
	return []*Employee{
		{Key: "8b6ee646a9620b286499c3df6918c488", Code: "1000", LastName: "架空", FirstName: "太郎", Division: "本社",
			Type:   "正社員",
			Groups: []string{"人事部"}, Hired: "2016-04-01", Days: days},
		{Key: "1f0a2b3c4d5e6f708192a3b4c5d6e7f8", Code: "1001", LastName: "見本", FirstName: "花子", Division: "大阪支店",
			Type: "パートタイマー", Hired: "2020-07-01"},
		{Key: "aa11bb22cc33dd44ee55ff6677889900", Code: "1002", LastName: "例示", FirstName: "次郎", Division: "本社",
			Type:  "契約社員",
			Hired: "2018-01-01", Resigned: "2026-03-31"},
	}
}

func (s *Server) employees(w http.ResponseWriter, r *http.Request) {
	today := s.options.Now().In(jst).Format(dateLayout)
	if date := r.URL.Query().Get("date"); date != "" {
		today = date
	}
	list := []any{}
	for _, e := range s.options.Employees {
		if e.Resigned != "" && e.Resigned < today && r.URL.Query().Get("includeResigner") != "true" {
			continue
		}
		groups := []any{}
		for i, name := range e.Groups {
			groups = append(groups, map[string]any{"code": fmt.Sprintf("%04d", i+1), "name": name})
		}
		entry := map[string]any{"divisionCode": "1000", "divisionName": e.Division, "gender": "no_selected",
			"typeCode": "1", "typeName": e.Type,
			"code": e.Code, "key": e.Key, "lastName": e.LastName, "firstName": e.FirstName, "employeeGroups": groups}
		for field, value := range map[string]string{"hiredDate": e.Hired, "resignationDate": e.Resigned,
			"birthDate": Canary, "lastNamePhonetics": Canary} {
			if value != "" && additional(r, field) {
				entry[field] = value
			}
		}
		list = append(list, entry)
	}
	fakehttp.JSON(w, http.StatusOK, list)
}
