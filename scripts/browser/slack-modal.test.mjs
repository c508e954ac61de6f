// The page of hako-dev slack: what an upstream server asks in the middle of a call, in a modal and as an address.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'

import { accessible, clean, narrow, shoot, startChromium } from './chromium.mjs'
import { startSlack } from './slack.mjs'

const script = `steps:
  - {when: book, call: [{tool: rooms_book_room}]}
  - {when: sign, call: [{tool: rooms_sign_in}]}
  - {after: '(?s).*', say: "\${result}"}
`

describe('hako-dev slack, questions of servers', () => {
  let chromium, slack, dir
  before(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'hako-modal-'))
    const rooms = { command: process.execPath, args: [path.join(import.meta.dirname, 'asks.mjs')], protocolVersion: '2025-11-25', trustAnnotations: true }
    await writeFile(path.join(dir, 'servers.json'), JSON.stringify({ mcpServers: { rooms } }))
    await writeFile(path.join(dir, 'script.yaml'), script)
    const start = startSlack(['--script', path.join(dir, 'script.yaml')], { HAKO_UPSTREAMS: path.join(dir, 'servers.json') })
    ;[chromium, slack] = await Promise.all([startChromium(), start])
  })
  after(async () => {
    await chromium?.close()
    await slack?.stop()
    await rm(dir, { recursive: true, force: true })
  })

  async function as(person, options) {
    const page = await chromium.open(slack.url, options)
    await page.locator('#person').selectOption({ label: person })
    await page.waitForFunction(() => location.search.includes('as='))
    return page
  }
  const ken = '見本 健 (@ken, en)'
  const aki = '見本 あき (@aki, ja)'
  const replies = page => page.locator('#replies')
  const modal = page => page.getByRole('dialog')
  async function ask(page, text) {
    await page.locator('#compose textarea').fill(text)
    await page.keyboard.press('Enter')
  }

  test('a form is opened, closed, corrected and sent, by whom it is for alone', async () => {
    const page = await as(ken)
    const other = await as(aki, { size: 'phone', theme: 'dark', language: 'ja' })
    await ask(page, '@hako book a room')
    await replies(page).getByRole('button', { name: 'Answer' }).click()
    await modal(page).getByText('Which room is it to be?').waitFor()
    assert.equal(await modal(other).count(), 0)
    assert.equal(await modal(page).getByLabel('Your name').inputValue(), 'Ken')
    assert.equal(await modal(page).getByLabel('Room').inputValue(), '1')
    assert.ok(await modal(page).getByRole('checkbox', { name: 'tea' }).isChecked())
    await accessible(page, 'a modal')
    await shoot(page, 'slack-modal')

    await page.keyboard.press('Escape') // closes the modal, and not the thread
    await modal(page).waitFor({ state: 'detached' })
    await replies(page).getByRole('button', { name: 'Answer' }).click()

    // What is required is missed before anything is sent.
    await modal(page).getByRole('button', { name: 'Send' }).click()
    assert.equal(await modal(page).getByText('Please complete this required field.').count(), 2)
    // What the bot finds stands at its field, and what was written stays.
    await modal(page).getByLabel('Day').fill('tomorrow')
    await modal(page).getByLabel('Guests').fill('none')
    await modal(page).getByRole('radio', { name: 'Yes' }).check()
    await modal(page).getByRole('button', { name: 'Send' }).click()
    await modal(page).getByText('Guests must be a number').waitFor()
    assert.equal(await modal(page).getByText('Please complete').count(), 0)
    assert.equal(await modal(page).locator('.field.invalid').count(), 2)
    assert.equal(await modal(page).getByLabel('Day').getAttribute('aria-invalid'), 'true')
    assert.equal(await modal(page).getByLabel('Day').inputValue(), 'tomorrow')
    await accessible(page, 'a modal with errors')
    await shoot(page, 'slack-modal-errors')

    await modal(page).getByLabel('Day').fill('2026-12-24')
    await modal(page).getByLabel('Guests').fill('3')
    await modal(page).getByLabel('Room').selectOption({ label: 'North' })
    await modal(page).getByRole('checkbox', { name: 'board' }).check()
    await modal(page).getByLabel('Notes').fill('<b>first</b> line')
    await modal(page).getByRole('button', { name: 'Send' }).click()
    await modal(page).waitFor({ state: 'detached' })
    const got = replies(page).getByText('{"agree":true,"day":"2026-12-24","extras":["tea","board"],"guests":3,"name":"Ken","notes":"<b>first</b> line","room":"n"}')
    await got.first().waitFor()
    await replies(page).getByText('Answered by').waitFor()
    await clean(other)
    await clean(page)
  })

  test('in Japanese, on a phone', async () => {
    const page = await as(aki, { size: 'phone', theme: 'dark', language: 'ja' })
    await ask(page, '@hako book')
    await replies(page).getByRole('button', { name: '回答する' }).click()
    await modal(page).getByText('（任意）').first().waitFor()
    await narrow(page, 'a modal on a phone')
    await accessible(page, 'a modal on a phone')
    await shoot(page, 'slack-modal-phone')
    await modal(page).getByRole('button', { name: 'あとで' }).click()
    await modal(page).waitFor({ state: 'detached' })
    await replies(page).getByRole('button', { name: '断る' }).click()
    await replies(page).getByText('{"action":"decline"}').first().waitFor()
    await clean(page)
  })

  test('an address is a link, and is agreed to by a button', async () => {
    const page = await as(ken)
    await ask(page, '@hako sign me in')
    const link = replies(page).getByRole('link', { name: 'Open rooms.example' })
    await link.waitFor()
    assert.equal(await link.getAttribute('href'), 'https://rooms.example/sign-in?x=1')
    assert.equal(await link.getAttribute('rel'), 'noopener noreferrer')
    await replies(page).getByRole('button', { name: 'I have been there' }).click()
    await replies(page).getByText('{"action":"accept"}').first().waitFor()
    await clean(page)
  })

  test('a message written before the earlier ones have arrived opens its own thread', async () => {
    const page = await chromium.open(slack.url)
    await page.route('**/api/stream?*', async route => {
      await new Promise(done => setTimeout(done, 1000))
      await route.continue()
    })
    await page.locator('#person').selectOption({ label: ken })
    await ask(page, '@hako sign me in once more')
    await replies(page).getByText('once more').first().waitFor()
    await replies(page).getByRole('link', { name: 'Open rooms.example' }).waitFor()
    await replies(page).getByRole('button', { name: 'I have been there' }).click()
    await replies(page).getByText('{"action":"accept"}').first().waitFor()
    await clean(page)
  })
})
