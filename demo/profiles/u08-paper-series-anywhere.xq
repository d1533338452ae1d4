(: Hana near Los Angeles: The routing query for Broker 6 in Figure 4: the tide forecasts of
   every edition. :)
/nitf//series[@series.name = "Tide Forecasts"]
