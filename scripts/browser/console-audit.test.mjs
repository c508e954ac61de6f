// The audit log's search in the console: its time, its filters on a phone, values of a record, and the way from a chart. Over the fake.
import assert from 'node:assert/strict'

import { answers } from './answers.mjs'
import { accessible, narrow } from './chromium.mjs'
import { opened } from './opened.mjs'

/** searched runs work on a page, with the parameters of all searches so far. */
function searched(name, { hash = '#/audit', more = {}, ...options }, work) {
  const asked = []
  const audit = url => {
    asked.push(Object.fromEntries(url.searchParams))
    return answers().audit(url)
  }
  opened(name, { hash, more: { audit, ...more }, ...options }, page => work(page, asked))
}

const parameters = page => Object.fromEntries(new URLSearchParams(new URL(page.url()).hash.split('?')[1]))

searched('a span ends now, and is the same time on older pages; it takes the place of two moments', { hash: '#/audit?from=2026-01-01T00:00' }, async (page, asked) => {
  await page.locator('tbody tr').first().waitFor()
  await Promise.all([page.waitForResponse(response => asked.length > 1 && response.url().includes('from=')), page.getByLabel('Time that is shown').selectOption('hour')])
  assert.deepEqual(parameters(page), { span: 'hour' })
  assert.equal(await page.getByLabel('From').isVisible(), false)
  const age = Date.now() - Date.parse(asked.at(-1).from)
  assert.ok(age > 3590e3 && age < 3720e3, `${age} ms`)
  assert.equal(asked.at(-1).span, undefined)
  const { from } = asked.at(-1)
  await Promise.all([page.waitForResponse(/cursor=/), page.getByRole('button', { name: 'Older records' }).click()])
  assert.equal(asked.at(-1).from, from)
  assert.equal(new URL(await page.getByRole('link', { name: 'CSV' }).getAttribute('href')).searchParams.get('from'), from)
})
searched('a value of a record narrows the search', { hash: '#/audit?outcome=ok' }, async (page, asked) => {
  await page.locator('.opener').first().click()
  await page.getByRole('dialog').getByRole('link', { name: 'aki@example.com' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.waitForFunction(() => document.querySelector('[name=user]').value === 'aki@example.com')
  assert.deepEqual(parameters(page), { outcome: 'ok', user: 'aki@example.com' })
  await page.locator('tbody tr').first().waitFor()
  assert.deepEqual(asked.at(-1), { outcome: 'ok', user: 'aki@example.com', lang: 'en' })
})
searched('a search without a result can be cleared', { hash: '#/audit?tool=none&text=x', more: { audit: url => url.searchParams.has('tool') ? { items: [] } : answers().audit(url) } }, async page => {
  await page.getByRole('button', { name: 'Clear the filters' }).click()
  await page.locator('tbody tr').first().waitFor()
  assert.deepEqual(parameters(page), {})
})
searched('on a phone, records come before filters, which say how many there are', { hash: '#/audit?tool=x&outcome=ok&text=y', size: 'phone' }, async page => {
  const fold = page.getByRole('button', { name: 'Filters (2)' })
  assert.equal(await page.getByLabel('Outcome').isVisible(), false)
  await page.locator('tbody tr').first().waitFor()
  assert.ok((await page.locator('tbody tr').first().boundingBox()).y < 740, 'the first record is on the first screen')
  await fold.click()
  assert.equal(await page.getByLabel('Outcome').inputValue(), 'ok')
  assert.equal(await fold.getAttribute('aria-expanded'), 'true')
  await narrow(page, 'filters')
  await accessible(page, 'filters')
})
searched('a chart leads to the calls of a moment, of its tool', { hash: '#/tools/get_weather', timezoneId: 'Asia/Tokyo' }, async (page, asked) => {
  await page.locator('.legend li').first().waitFor()
  const plot = page.locator('.plot').first()
  const before = Date.now()
  await plot.focus()
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.press('Enter')
  await page.locator('.audit tbody tr').first().waitFor()
  const { tool, type, from, to } = asked.at(-1)
  assert.deepEqual([tool, type], ['get_weather', 'tools/call'])
  assert.ok(Date.parse(from) <= before && Date.parse(to) > before - 60_000 && Date.parse(to) - Date.parse(from) <= 120_000, `${from} to ${to}`)
})
