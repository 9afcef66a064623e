--  Ada: arithmetic, sorting, and an exception handler below them.
with Ada.Containers.Vectors;
with Ada.Execution_Time;   use Ada.Execution_Time;
with Ada.Real_Time;        use Ada.Real_Time;
with Ada.Text_IO;

procedure Truth is
   package Numbers is new Ada.Containers.Vectors (Natural, Integer);
   package Sorting_Of is new Numbers.Generic_Sorting;
   package Output is new Ada.Text_IO.Float_IO (Float);

   procedure Leaf;
   pragma No_Inline (Leaf);
   procedure Sorting;
   pragma No_Inline (Sorting);

   Sum : Integer := 0;
   pragma Volatile (Sum);

   procedure Leaf is
      X : Integer := 1;
   begin
      for I in 1 .. 400_000 loop
         X := (X * 77 + I) mod 65_536;
      end loop;
      Sum := X;
   end Leaf;

   procedure Sorting is
      Items : Numbers.Vector;
   begin
      for I in 1 .. 5_000 loop
         Items.Append (I * 7_919 mod 3_001);
      end loop;
      Sorting_Of.Sort (Items);
      Sum := Items (5);
   end Sorting;

   function Spend (Milliseconds_Wanted : Integer; Call : access procedure) return Float is
      Start : constant CPU_Time := Clock;
   begin
      while Clock - Start < Milliseconds (Milliseconds_Wanted) loop
         Call.all;
      end loop;
      return Float (To_Duration (Clock - Start));
   end Spend;

   First, Second : Float := 0.0;
begin
   for Round in 1 .. 8 loop
      First := First + Spend (80, Leaf'Access);
      Second := Second + Spend (50, Sorting'Access);
   end loop;
   Ada.Text_IO.Put ("leaf ");
   Output.Put (100.0 * First / (First + Second), Exp => 0, Aft => 2);
   Ada.Text_IO.New_Line;
   Ada.Text_IO.Put ("sorting ");
   Output.Put (100.0 * Second / (First + Second), Exp => 0, Aft => 2);
   Ada.Text_IO.New_Line;
end Truth;
