(: === every trade === :)
//*:trade

(: === confirmations of FpML 5 === :)
declare namespace f = "http://www.fpml.org/FpML-5/confirmation";
/f:*

(: === requests for confirmation === :)
declare default element namespace "http://www.fpml.org/FpML-5/confirmation";
/requestConfirmation[header/sentBy]

(: === documents of FpML 4 === :)
/*:FpML[starts-with(namespace-uri(), "http://www.fpml.org/20")]

(: === the version a document has === :)
for $f in /* return <version>{ substring-after(namespace-uri($f), "http://www.fpml.org/") }</version>

(: === swaps in dollars === :)
//*:swap[*:swapStream//*:notionalStepSchedule/*:currency = "USD"]

(: === notionals of at least ten million === :)
//*:notionalStepSchedule[*:initialValue >= 10000000]

(: === notionals, largest first === :)
for $n in //*:notionalStepSchedule
order by number($n/*:initialValue) descending, $n/*:currency
return <notional currency="{$n/*:currency}">{string($n/*:initialValue)}</notional>

(: === the sum of all payments === :)
<payments>{ for $p in //*:paymentAmount[*:amount castable as xs:decimal] return <p c="{$p/*:currency}">{xs:decimal($p/*:amount) * 2}</p> }</payments>

(: === one line for each trade header === :)
for $h in //*:tradeHeader
return <trade date="{$h/*:tradeDate}" ids="{$h/*:partyTradeIdentifier/*:tradeId}"/>

(: === parties by name === :)
for $p in //*:party[*:partyName]
order by $p/*:partyName[1]
return <party id="{$p/@id}">{string($p/*:partyName[1])}</party>

(: === who pays whom === :)
for $s in //*:swapStream
return <stream>{ attribute payer { $s/*:payerPartyReference/@href }, attribute receiver { $s/*:receiverPartyReference/@href } }</stream>

(: === references followed === :)
for $s in //*:payerPartyReference
let $party := //*:party[@id = $s/@href]
where $party
return <payer href="{$s/@href}">{string($party[1]/*:partyId[1])}</payer>

(: === ids that nothing refers to === :)
for $r in //*[@id] where not(//@href = $r/@id) return <alone>{$r/@id}</alone>

(: === the fixed leg of a swap === :)
for $s in //*:swap/*:swapStream[.//*:fixedRateSchedule]
return <fixed rate="{$s//*:fixedRateSchedule/*:initialValue}">{$s//*:dayCountFraction}</fixed>

(: === rates above four per cent === :)
//*:fixedRateSchedule[*:initialValue > 0.04]

(: === floating indexes, each once === :)
for $i in distinct-values(//*:floatingRateIndex) order by $i return <index>{$i}</index>

(: === tenors put together === :)
for $t in //*:indexTenor
return <tenor>{concat($t/*:periodMultiplier, $t/*:period)}</tenor>

(: === quarterly payments === :)
//*:paymentFrequency[*:periodMultiplier = 3][*:period = "M"]

(: === every second stream === :)
for $s in //*:swapStream[position() mod 2 = 0] return <second id="{$s/@id}"/>

(: === effective and termination in one === :)
for $c in //*:calculationPeriodDates[*:effectiveDate][*:terminationDate]
return <period from="{substring($c/*:effectiveDate/*:unadjustedDate, 1, 10)}" to="{substring($c/*:terminationDate/*:unadjustedDate, 1, 10)}"/>

(: === longer than five years === :)
for $c in //*:calculationPeriodDates
let $from := $c/*:effectiveDate/*:unadjustedDate, $to := $c/*:terminationDate/*:unadjustedDate
where $from castable as xs:date and $to castable as xs:date
return <years>{ year-from-date(xs:date($to)) - year-from-date(xs:date($from)) }</years>

(: === traded before 2003 === :)
//*:tradeDate[. castable as xs:date][xs:date(.) < xs:date("2003-01-01Z")]

(: === business centers as a list === :)
for $b in //*:businessCenters[*:businessCenter]
return <centers n="{count($b/*:businessCenter)}">{string-join($b/*:businessCenter, " ")}</centers>

(: === London and New York together === :)
//*:businessCenters[*:businessCenter = "GBLO"][*:businessCenter = "USNY"]

(: === credit default swaps with their terms === :)
for $c in //*:creditDefaultSwap
return <cds buyer="{$c/*:generalTerms/*:buyerPartyReference/@href}">{$c/*:protectionTerms/*:calculationAmount}</cds>

(: === a table of amounts === :)
<amounts document="{local-name(/*)}">{
  for $a in //*:calculationAmount return element { lower-case($a/*:currency) } { $a/*:amount/text() }
}</amounts>

(: === messages with a correlation === :)
for $c in //*:correlationId return <correlation scheme="{$c/@*:correlationIdScheme}">{string($c)}</correlation>

(: === messages sent and to whom === :)
for $h in //*:header
return <mail from="{$h/*:sentBy}" to="{string-join($h/*:sendTo, ",")}" at="{$h/*:creationTimestamp}"/>

(: === sent in the morning === :)
for $t in //*:header/*:creationTimestamp[. castable as xs:dateTime]
where hours-from-dateTime(xs:dateTime($t)) < 12
return <morning>{hours-from-dateTime(xs:dateTime($t))}</morning>

(: === options that can be exercised early === :)
//*[self::*:americanExercise or self::*:bermudaExercise]

(: === the kind of exercise === :)
for $e in //*[ends-with(local-name(), "Exercise")][1]
return element { local-name($e) } { $e/*:expirationDate//*:unadjustedDate }

(: === what stands before the first stream === :)
for $s in //*:swapStream[1] return <before>{ $s/preceding-sibling::*/local-name() }</before>

(: === documentation that is ISDA === :)
//*:documentation[*:masterAgreement/*:masterAgreementType = "ISDA"]

(: === agreements or their definitions === :)
for $d in //*:documentation
return <doc>{ if ($d/*:masterAgreement) then $d/*:masterAgreement/*:masterAgreementType else $d/*[1] }</doc>

(: === the average of all rates === :)
<average>{ let $r := //*:fixedRateSchedule/*:initialValue where exists($r) return round-half-to-even(avg($r), 6) }</average>

(: === trades without any party: matches nothing === :)
/*[.//*:trade][not(.//*)]
