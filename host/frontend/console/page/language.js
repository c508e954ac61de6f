// The page in two languages: texts, numbers and times. Each language has a dictionary in two files, with the same keys: one for the first page, one for the
// rest. The reader chooses the language; the browser's preference is the default.

// The parts of the dictionaries that are loaded, by language.
const dictionaries = {}

/** languages has the available languages by their own names. */
export const languages = { en: 'English', ja: '日本語' }

/** language is the current language. */
export let language = 'en'

/** speak changes the language to one of languages, or to the browser's preference. It loads the dictionary first. */
export async function speak(wanted = preferred()) {
  const next = Object.hasOwn(languages, wanted) ? wanted : 'en'
  dictionaries[next] ??= { ...(await import(`./lang/${next}.js`)).default }
  language = next
  document.documentElement.lang = language
}

/** learn loads the texts of all views but the first, in the current language. */
export async function learn() {
  const dictionary = dictionaries[language]
  Object.assign(dictionary, (await import(`./lang/views/${language}.js`)).default)
}

function preferred() {
  const known = navigator.languages.map(tag => tag.slice(0, 2).toLowerCase()).find(tag => Object.hasOwn(languages, tag))
  return known ?? 'en'
}

/** t returns the text for key, with {name} replaced by values.name. A text with plural forms uses the form for values.n. */
export function t(key, values = {}) {
  let text = dictionaries[language][key]
  if (text === undefined) throw new Error(`no text for ${key}`)
  if (typeof text === 'object') text = text[new Intl.PluralRules(language).select(values.n)] ?? text.other
  return text.replace(/\{(\w+)\}/g, (whole, name) => name in values ? String(values[name]) : whole)
}

/** term returns the text for one of the server's fixed words, such as an outcome; an unknown word is returned unchanged. */
export function term(set, word) {
  const key = `${set}.${word}`
  return Object.hasOwn(dictionaries[language], key) ? t(key) : String(word ?? '')
}

const formats = new Map()

function cached(kind, options) {
  const key = language + kind.name + JSON.stringify(options)
  if (!formats.has(key)) formats.set(key, new kind(language, options))
  return formats.get(key)
}

/** number formats a count or a measure, with a maximum of decimal places. */
export function number(value, digits = 0) {
  return cached(Intl.NumberFormat, { maximumFractionDigits: digits }).format(value)
}

/** rate formats a number per second, with decimal places if it is small. */
export function rate(value) {
  return number(value, value < 10 ? 2 : value < 100 ? 1 : 0)
}

/** percent formats a share from 0 to 1. */
export function percent(share) {
  return cached(Intl.NumberFormat, { style: 'percent', maximumFractionDigits: share < 0.1 ? 1 : 0 }).format(share)
}

/** milliseconds formats a duration. */
export function milliseconds(value) {
  if (value > 0 && value < 1) return `${number(value * 1000)} µs`
  if (value < 1000) return `${number(value, value < 10 ? 1 : 0)} ms`
  if (value < 120_000) return `${number(value / 1000, 1)} s`
  return `${number(value / 60_000, 1)} min`
}

/** bytes formats a size. */
export function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB']
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(value, 1)) / 10))
  return `${number(value / 1024 ** power, power ? 1 : 0)} ${units[power]}`
}

/** time formats a time of day, to the second, with the date unless it is today, and the year unless it is this one. */
export function time(text) {
  const moment = new Date(text)
  const now = new Date()
  if (Number.isNaN(moment.getTime())) return '–'
  const clock = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }
  const day = moment.toDateString() === now.toDateString() ? {} : { month: '2-digit', day: '2-digit' }
  const year = moment.getFullYear() === now.getFullYear() ? {} : { year: 'numeric' }
  return cached(Intl.DateTimeFormat, { ...year, ...day, ...clock }).format(moment)
}

/** dateAndMinute formats a date with year, hour and minute. */
export function dateAndMinute(text) {
  const when = new Date(text)
  return Number.isNaN(when.getTime()) ? '–' : cached(Intl.DateTimeFormat, { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23' }).format(when)
}

/** moment formats a date and time in full. */
export function moment(text) {
  const when = new Date(text)
  return Number.isNaN(when.getTime()) ? '–' : cached(Intl.DateTimeFormat, { dateStyle: 'medium', timeStyle: 'long' }).format(when)
}

/** local formats a time by ISO 8601 in the reader's time zone, without the zone. */
export function local(when) {
  return new Date(when.getTime() - when.getTimezoneOffset() * 60_000).toISOString().slice(0, -1)
}

/** stamp formats a time by ISO 8601 in the reader's time zone, with the zone's name. */
export function stamp(text) {
  const when = new Date(text)
  if (Number.isNaN(when.getTime())) return '–'
  const offset = -when.getTimezoneOffset()
  const two = n => String(Math.trunc(n)).padStart(2, '0')
  return `${local(when)}${offset < 0 ? '-' : '+'}${two(Math.abs(offset) / 60)}:${two(Math.abs(offset) % 60)} (${Intl.DateTimeFormat().resolvedOptions().timeZone})`
}

/** ago formats the time that has passed since a date, rounded. */
export function ago(text, now = Date.now()) {
  const seconds = Math.round((new Date(text).getTime() - now) / 1000)
  const [unit, size] = [['day', 86400], ['hour', 3600], ['minute', 60]].find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1]
  return cached(Intl.RelativeTimeFormat, { numeric: 'auto' }).format(Math.trunc(seconds / size), unit)
}

/** countdown formats the remaining time, as minutes and seconds. */
export function countdown(text, now = Date.now()) {
  const seconds = Math.max(0, Math.ceil((new Date(text).getTime() - now) / 1000))
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** digest shortens a digest. */
export function digest(text) {
  return String(text ?? '').replace(/^sha256:/, '').slice(0, 12)
}

/** json formats a value as indented JSON. */
export function json(value) {
  return JSON.stringify(value, null, 2) ?? ''
}

/** who formats a caller in one line. */
export function who(caller) {
  const name = caller?.user || caller?.token || t('nobody')
  return caller?.tenant ? `${name} (${caller.tenant})` : name
}
