package freee

import "strings"

// fields are those of one part of an employee, by what the fake fills them with.
type fields struct {
	texts, numbers, dates, flags string
	words                        map[string]string // field to a value of its enumeration
}

// made fills in a part of employee e.
func (f fields) made(e *Employee, company *Company) map[string]any {
	part := map[string]any{"id": CanaryNumber, "company_id": company.ID, "employee_id": e.ID}
	for _, name := range strings.Fields(f.texts) {
		part[name] = Canary + "-" + name
	}
	for _, name := range strings.Fields(f.numbers) {
		part[name] = CanaryNumber
		if strings.HasSuffix(name, "prefecture_code") {
			part[name] = 46 // the highest there is
		}
	}
	for _, name := range strings.Fields(f.dates) {
		part[name] = CanaryDate
	}
	for _, name := range strings.Fields(f.flags) {
		part[name] = false
	}
	for names, word := range f.words {
		for _, name := range strings.Fields(names) {
			part[name] = word
		}
	}
	return part
}

// whole is an employee as /employees gives it: pay, bank account, pension and dependants come along unasked.
func (e *Employee) whole(company *Company) map[string]any {
	profile := profileFields.made(e, company)
	profile["last_name"], profile["first_name"], profile["title"] = e.LastName, e.FirstName, nullable(e.Title)
	profile["employment_type"] = nil
	if e.EmploymentType != nil {
		profile["employment_type"] = *e.EmploymentType
	}
	return map[string]any{
		"id": e.ID, "company_id": company.ID, "num": e.Num, "display_name": e.displayName(),
		"base_pension_num": Canary, "employment_insurance_reference_number": Canary, "birth_date": CanaryDate,
		"entry_date": e.Hired, "retire_date": nullable(e.Retired), "user_id": nil,
		"profile_rule":                   profile,
		"health_insurance_rule":          healthFields.made(e, company),
		"welfare_pension_insurance_rule": pensionFields.made(e, company),
		"dependent_rules":                []any{dependantFields.made(e, company)},
		"bank_account_rule":              bankFields.made(e, company),
		"basic_pay_rule":                 payFields.made(e, company),
		"payroll_calculation":            !e.OffPayroll, "company_reference_date_rule_name": nil,
	}
}

var profileFields = fields{
	texts: "last_name_kana first_name_kana zipcode1 zipcode2 address address_kana phone1 phone2 phone3 " +
		"residential_zipcode1 residential_zipcode2 residential_address residential_address_kana widow_type " +
		"disability_type email householder_name",
	numbers: "prefecture_code residential_prefecture_code",
	flags:   "married is_working_student",
	words: map[string]string{
		"gender":      "unselected",
		"householder": "myself",
	},
}

var healthFields = fields{
	texts: "reference_num",
	numbers: "manual_health_insurance_amount_of_employee_salary manual_health_insurance_amount_of_employee_bonus " +
		"manual_health_insurance_amount_of_company_salary manual_health_insurance_amount_of_company_bonus " +
		"manual_care_insurance_amount_of_employee_salary manual_care_insurance_amount_of_employee_bonus " +
		"manual_care_insurance_amount_of_company_salary manual_care_insurance_amount_of_company_bonus " +
		"manual_child_support_fund_amount_of_employee_salary manual_child_support_fund_amount_of_employee_bonus " +
		"manual_child_support_fund_amount_of_company_salary manual_child_support_fund_amount_of_company_bonus " +
		"standard_monthly_remuneration",
	flags: "entried health_insurance_qualification_required",
	words: map[string]string{
		"health_insurance_salary_calc_type health_insurance_bonus_calc_type care_insurance_salary_calc_type " +
			"care_insurance_bonus_calc_type child_support_fund_salary_calc_type child_support_fund_bonus_calc_type": "auto",
	},
}

var pensionFields = fields{
	texts: "reference_num",
	numbers: "manual_child_allowance_contribution_amount_bonus manual_child_allowance_contribution_amount_salary " +
		"manual_welfare_pension_insurance_amount_of_company_bonus " +
		"manual_welfare_pension_insurance_amount_of_company_salary " +
		"manual_welfare_pension_insurance_amount_of_employee_bonus " +
		"manual_welfare_pension_insurance_amount_of_employee_salary standard_monthly_remuneration",
	flags: "entried",
	words: map[string]string{
		"child_allowance_contribution_bonus_calc_type child_allowance_contribution_salary_calc_type " +
			"welfare_pension_insurance_bonus_calc_type welfare_pension_insurance_salary_calc_type": "auto",
	},
}

var dependantFields = fields{
	texts: "last_name first_name last_name_kana first_name_kana relationship residence_type zipcode1 zipcode2 address " +
		"address_kana base_pension_num disability_type occupation phone1 phone2 phone3 " +
		"social_insurance_and_tax_dependent social_insurance_other_dependent_acquisition_reason " +
		"social_insurance_other_dependent_disqualification_reason tax_other_dependent_acquisition_reason " +
		"tax_other_dependent_disqualification_reason",
	numbers: "prefecture_code income annual_revenue annual_remittance_amount",
	dates: "birth_date employment_insurance_receives_from social_insurance_dependent_acquisition_date " +
		"social_insurance_dependent_disqualification_date tax_dependent_acquisition_date " +
		"tax_dependent_disqualification_date",
	flags: "health_insurance_qualification_required",
	words: map[string]string{
		"gender employment_insurance_receive_status phone_type": "unselected",
		"social_insurance_dependent_acquisition_reason social_insurance_dependent_disqualification_reason " +
			"tax_dependent_acquisition_reason tax_dependent_disqualification_reason": "",
		"non_resident_dependents_reason": "none",
	},
}

var bankFields = fields{
	texts: "bank_name bank_name_kana bank_code branch_name branch_name_kana branch_code account_number account_name " +
		"account_type",
}

var payFields = fields{
	numbers: "pay_amount",
	words: map[string]string{
		"pay_calc_type": "monthly",
	},
}
