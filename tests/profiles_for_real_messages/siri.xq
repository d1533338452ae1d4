(: === every message === :)
declare default element namespace "http://www.siri.org.uk/siri";
/Siri

(: === responses of any service === :)
declare namespace s = "http://www.siri.org.uk/siri";
/s:Siri[s:ServiceDelivery]

(: === requests from NADER === :)
declare default element namespace "http://www.siri.org.uk/siri";
/Siri/*[RequestorRef = "NADER"]

(: === what was asked for === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $r in /Siri/ServiceRequest/*[ends-with(local-name(), "Request")]
return <asked what="{local-name($r)}" version="{$r/@version}"/>

(: === subscriptions, one document a message === :)
declare default element namespace "http://www.siri.org.uk/siri";
<subscriptions>{ for $s in /Siri/SubscriptionRequest/* where ends-with(local-name($s), "SubscriptionRequest") return element { local-name($s) } { $s/SubscriptionIdentifier/text() } }</subscriptions>

(: === heartbeat interval === :)
declare default element namespace "http://www.siri.org.uk/siri";
//SubscriptionContext[HeartbeatInterval = "PT5M"]

(: === stop names, in order === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $n in distinct-values(//StopPointName)
order by $n
return <stop>{$n}</stop>

(: === affected stops with their place === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $p in //AffectedStopPoint[Location]
return <at lat="{$p/Location/Latitude}" lon="{$p/Location/Longitude}">{string($p/StopPointRef)}</at>

(: === situations that block the journey planner === :)
declare default element namespace "http://www.siri.org.uk/siri";
//PtSituationElement[Consequences/Consequence/Blocking/JourneyPlanner = "true"]

(: === the same with a typed comparison === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $c in //Consequence where $c/Blocking/JourneyPlanner = true() return <blocked>{$c/Condition}</blocked>

(: === summaries in English === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $s in //*:Summary[@xml:lang = "EN"] return <summary>{normalize-space($s)}</summary>

(: === summaries and details in a dictionary === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $e in //PtSituationElement
return <situation number="{$e/SituationNumber}">{
  for $t in ($e/Summary, $e/Description) return element { lower-case(local-name($t)) } { $t/@xml:lang, $t/text() }
}</situation>

(: === validity as a span === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $v in //ValidityPeriod
let $start := xs:dateTime($v/StartTime[1]), $end := xs:dateTime($v/EndTime[1])
where $end > $start
return <span hours="{hours-from-dateTime($end) - hours-from-dateTime($start)}"/>

(: === older than 2004 === :)
declare default element namespace "http://www.siri.org.uk/siri";
//*[CreationTime[. castable as xs:dateTime][xs:dateTime(.) < xs:dateTime("2004-01-01T00:00:00Z")]]

(: === responses with a timestamp, by day === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $t in /Siri/ServiceDelivery/ResponseTimestamp
return <day>{ substring-before($t, "T") }</day>

(: === monitored vehicles === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $j in //MonitoredVehicleJourney
return <vehicle line="{$j/LineRef}" direction="{$j/DirectionRef}">{$j/VehicleLocation}</vehicle>

(: === the first vehicle only === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $j in (//MonitoredVehicleJourney)[1] return $j/LineRef

(: === calls with their position === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $c at $n in //*[ends-with(local-name(), "Call")]
return <call n="{$n}" kind="{local-name($c)}">{string($c/StopPointRef)}</call>

(: === lines, each once, joined === :)
declare default element namespace "http://www.siri.org.uk/siri";
<lines>{ let $l := distinct-values(//LineRef) where exists($l) return string-join($l, ", ") }</lines>

(: === platforms of components === :)
declare default element namespace "http://www.siri.org.uk/siri";
//AffectedComponent[starts-with(ComponentName, "Platform")][ComponentRef]

(: === elements of the ifopt namespace === :)
//*[starts-with(namespace-uri(), "http://www.ifopt.org.uk/")]

(: === their names, in full === :)
for $e in //*[contains(namespace-uri(), "ifopt")]
return <ifopt prefix="{substring-before(name($e), ":")}" name="{local-name($e)}"/>

(: === errors in capability responses === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $e in //ErrorCondition/* return <error>{local-name($e), string($e/CapabilityRef)}</error>

(: === capabilities that are true === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $c in //GeneralInteraction
return <can yes="{count($c//*[not(*)][. = "true"])}" no="{count($c//*[not(*)][. = "false"])}"/>

(: === no direct delivery but fetched === :)
declare default element namespace "http://www.siri.org.uk/siri";
//Delivery[FetchedDelivery = "true" or not(DirectDelivery = "true")]

(: === everything about publishing === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $p in //PublishingActions/* return <action>{ $p/*[. = "true"]/local-name() }</action>

(: === text behind a language === :)
//*[@xml:lang = "DE"][string-length(.) > 3]

(: === two languages side by side === :)
for $e in //*[@xml:lang = "DE"]
let $other := $e/../*[@xml:lang = "EN"][local-name() = local-name($e)]
return <pair>{string($e)} / {string($other[1])}</pair>

(: === the deepest elements === :)
for $e in //*[count(ancestor::*) > 7][not(*)] return element leaf { attribute depth { count($e/ancestor::*) }, $e/text() }

(: === status of deliveries with if === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $d in /Siri/ServiceDelivery
return <delivery>{ if ($d/Status = "true") then "good" else if ($d/Status) then "bad" else "unknown" }</delivery>

(: === general messages and their channel === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $m in //GeneralMessage
order by $m/InfoMessageIdentifier descending
return <message channel="{$m/InfoChannelRef}" until="{$m/ValidUntilTime}">{normalize-space($m/Content)}</message>

(: === every severe consequence after a delay === :)
declare default element namespace "http://www.siri.org.uk/siri";
//Consequence[Severity = "severe"][Condition/following-sibling::Severity]

(: === consequences numbered within their situation === :)
declare default element namespace "http://www.siri.org.uk/siri";
for $s in //PtSituationElement, $c at $n in $s//Consequence
return <c situation="{$s/SituationNumber}" n="{$n}"/>

(: === the schema a message names: matches nothing, as no attribute has this value === :)
/*[@*:schemaLocation = "none"]
